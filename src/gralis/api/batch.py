"""`explain_batch`: several inputs in one call, on the same coalitions, with one fit for all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Unpack

import numpy as np
from torch import Tensor

from gralis.api.explain import about, begin, complete, kernels_of
from gralis.api.signature import options_of_explain
from gralis.api.tree_run import TreeRun, trees_behind
from gralis.arrays import Array
from gralis.errors import bad
from gralis.features import columns
from gralis.models.estimator_model import EstimatorModel, estimator, is_estimator
from gralis.options import Choices
from gralis.plans import as_plan
from gralis.problem import Problem, rows_of
from gralis.results.explanation import Explanation
from gralis.results.explanations import Explanations
from gralis.run import Run
from gralis.tables import table_rows
from gralis.tables.rows import is_frame
from gralis.targets import Target

_ENOUGH = 0.5  # an input that can use less than this share of the shared rays is explained alone


@options_of_explain(without=("target",))
def explain_batch(
    model: object,
    xs: object,
    *,
    target: Target | str | Sequence[Target | str] = None,
    **options: Unpack[Choices],
) -> Explanations:
    """phi of every input, all on the same coalitions. For a small model this is much faster than one call per input.

    Coalitions are drawn by the mean law of the inputs and weighted by the law of each input, so every result is
    unbiased. An input that the shared rays suit badly is explained again on rays drawn for it alone.

    Parameters
    ----------
    model : torch.nn.Module, callable or Model
        The model, as in `gralis.explain`.
    xs : tensor or array of shape (n_inputs, ...), a data frame, or a list of inputs
        The inputs; the rows of a data frame are inputs.
    target : int, tuple, callable, str, or a list with one of them for each input, optional
        Which output to explain, as in `gralis.explain`.

    Returns
    -------
    Explanations
        One explanation per input. The budget is that of each input.

    Examples
    --------
    >>> import torch
    >>> model = torch.nn.Linear(4, 3).eval()
    >>> explanations = explain_batch(model, torch.randn(5, 4), target=[0, 2, 1, 1, 0])
    >>> explanations.values.shape, len(explanations)
    ((5, 4), 5)
    """
    completed = complete({**options, "target": None}, "explain_batch")
    _refuse_several(target)
    closed = _closed_form(model, xs, target, completed)
    if closed is not None:
        return closed
    model, inputs, completed = _rows_at_once(model, xs, completed)
    targets = _one_each(target, len(inputs), "target")
    features = _one_each(completed["features"], len(inputs), "features")
    problems = [
        Problem.build(model, x, target=own, **{**about(completed), "features": partition})
        for x, own, partition in zip(inputs, targets, features, strict=True)
    ]
    explanations: dict[int, Explanation] = {}
    for places in sharing_groups(problems).values():
        explanations.update(zip(places, on_shared_rays([problems[k] for k in places], completed), strict=True))
    numbers = range(len(problems))
    return Explanations(tuple(explanations[k] for k in numbers), row_labels(xs, len(problems)))


def _refuse_several(target: Any) -> None:
    """Every input of a batch has one target. Several targets of one input share its rays in `explain`."""
    for own in target if isinstance(target, list) else [target]:
        if isinstance(own, list) or (isinstance(own, str) and own == "all"):
            allowed = "one target for all inputs, or a list with one for each input"
            advice = "Several targets of one input are for gralis.explain; for a batch, ask for them one by one."
            raise bad("target", "explain_batch", allowed, repr(own), advice)


def row_labels(xs: Any, n: int) -> tuple[str, ...]:
    """What the inputs are called: by the index of a data frame, or by their numbers."""
    return tuple(map(str, xs.index)) if is_frame(xs) else tuple(f"input {k}" for k in range(n))


def _closed_form(model: object, xs: Any, target: Any, options: dict[str, Any]) -> Explanations | None:
    """The explanations of rows by a tree ensemble, all summed up together; None if the model needs sampling."""
    targets = target if isinstance(target, list) else [target]
    trees = trees_behind(model, {**options, "target": targets})
    if trees is None:
        return None
    rows = table_rows(xs, "xs")
    if not len(rows):
        raise bad("xs", "explain_batch", "a batch of inputs (first axis) or a list with at least one", "no rows")
    each = _one_each(target, len(rows), "target")
    asked = (kernels_of(options["kernel"]), as_plan(options["plan"]), {**options, "target": "all"})
    run = TreeRun(trees, rows, *asked, several=True)
    return Explanations(run.of_rows(each), row_labels(xs, len(rows)))


def _rows_at_once(model: object, xs: object, options: dict[str, Any]) -> tuple[object, list[Any], dict[str, Any]]:
    """The inputs one by one. Rows of a table become numbers of one coding, so that all of them can share rays."""
    model = estimator(model) if is_estimator(model) else model
    table = is_frame(xs) or (isinstance(model, EstimatorModel) and not isinstance(xs, tuple))
    rows = rows_of(model, table_rows(xs, "xs"), options["baseline"]) if table and options["layer"] is None else None
    if rows is None or not len(rows.x):
        return model, _inputs(xs), options
    features = options["features"]
    options = {**options, "features": columns(rows.coding.names) if features is None and rows.named else features}
    if isinstance(model, EstimatorModel):
        return model.at(rows.coding), list(rows.x), {**options, "baseline": rows.baseline}
    return model, [xs.iloc[[k]] for k in range(len(rows.x))], options  # type: ignore[attr-defined]


def on_shared_rays(problems: Sequence[Problem], options: Mapping[str, Any]) -> list[Explanation]:
    """The results of one run on problems that can share rays. A problem that the rays suit badly is explained alone."""
    run = begin(problems, options)
    explanations = list(run.results())
    drawn = _drawn(explanations[0], run) if len(explanations) > 1 else None
    for place, explanation in enumerate(explanations):
        if drawn is not None and not explanation.exact and _usefulness(explanation, drawn) < _ENOUGH:
            alone = begin([run.problems[place]], options).result()
            explanations[place] = replace(alone, cost=alone.cost + explanation.cost)
    return explanations


def _drawn(explanation: Explanation, run: Run) -> Array | None:
    """The effective rays of each feature under the law by which the shared rays were drawn; None without such a law."""
    design, rows = explanation.design, explanation.ledger.kept_rows
    if rows is None or not design.estimator.own_law:
        return None
    return design.estimator.effective_rays(rows, replace(design, squared_distance=run.task.squared_distance))


def _usefulness(explanation: Explanation, drawn: Array) -> float:
    """The least ratio over the features of effective rays under the input's law to those under the drawing law."""
    design = explanation.design
    mine = design.estimator.effective_rays(explanation.ledger, design)
    moving = design.moving & (drawn > 0)
    return float((mine[moving] / drawn[moving]).min(initial=1.0))


def sharing_groups(problems: Sequence[Problem]) -> dict[object, list[int]]:
    """The places of problems that can share rays: of equal shapes, with equally many features and baselines.

    Rows of a table must also have the same coding.
    """
    groups: dict[object, list[int]] = {}
    for place, problem in enumerate(problems):
        shapes = tuple(tuple(leaf.shape) for leaf in problem.x)
        jumps = problem.features.discrete.tobytes()
        coding = None if problem.table is None else problem.table.key
        groups.setdefault((shapes, problem.n_features, problem.baselines.n_baselines, jumps, coding), []).append(place)
    return groups


def _inputs(xs: object) -> list[object]:
    if isinstance(xs, Tensor | np.ndarray):
        inputs: list[object] = list(xs) if xs.ndim > 1 else []
    else:
        inputs = list(xs) if isinstance(xs, list | tuple) else []
    if not inputs:
        got = f"shape {tuple(xs.shape)}" if isinstance(xs, Tensor | np.ndarray) else f"a {type(xs).__name__}"
        raise bad("xs", "explain_batch", "a batch of inputs (first axis) or a list with at least one", got)
    return inputs


def _one_each(value: Any, n: int, name: str) -> list[Any]:
    """A list with one value for each input. A value that is not a list is used for all inputs."""
    if not isinstance(value, list):
        return [value] * n
    if len(value) != n:
        raise bad(
            name, "explain_batch", f"one for all, or a list of {n}, one for each input", f"a list of {len(value)}"
        )
    return list(value)
