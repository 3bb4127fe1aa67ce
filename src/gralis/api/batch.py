"""Several inputs in one call: one design of coalitions, batches filled across inputs, one fit for all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Unpack

import numpy as np
from torch import Tensor

from gralis.api.explain import about, begin, complete
from gralis.certificates.effective_rays import support
from gralis.errors import bad
from gralis.ledger import Ledger
from gralis.options import Choices
from gralis.problem import Problem
from gralis.results.explanation import Explanation
from gralis.results.explanations import Explanations
from gralis.run import Run
from gralis.targets import Target

_WORTH = 0.5  # of the rays: an input whose own law makes less of the shared ones gets rays of its own


def explain_batch(
    model: object,
    xs: object,
    *,
    target: Target | Sequence[Target] = None,
    **options: Unpack[Choices],
) -> Explanations:
    """phi of every input, all on the same coalitions: much faster than one call each where the model is small.

    >>> import torch
    >>> model = torch.nn.Linear(4, 3).eval()
    >>> found = explain_batch(model, torch.randn(5, 4), target=[0, 2, 1, 1, 0])
    >>> found.values.shape, len(found)
    ((5, 4), 5)

    xs: a batch (first axis: inputs), or a list of inputs; a list of targets, or of features, has one for each input.
    The budget is that of each input. Coalitions are drawn by the inputs' mean law and weighed by each input's own, so
    that every result is unbiased as ever; an input that they suit badly is explained on rays of its own.
    """
    inputs = _inputs(xs)
    given = complete({**options, "target": None}, "explain_batch")
    targets = _one_each(target, len(inputs), "target")
    features = _one_each(given["features"], len(inputs), "features")
    problems = [
        Problem.build(model, x, target=own, **{**about(given), "features": partition})
        for x, own, partition in zip(inputs, targets, features, strict=True)
    ]
    found: dict[int, Explanation] = {}
    for places in alike(problems).values():
        found.update(zip(places, on_shared_rays([problems[k] for k in places], given), strict=True))
    return Explanations(
        tuple(found[k] for k in range(len(problems))), tuple(f"input {k}" for k in range(len(problems)))
    )


def on_shared_rays(problems: Sequence[Problem], given: Mapping[str, Any]) -> list[Explanation]:
    """The results of one run on problems that are alike; those that the shared rays suit badly are explained alone."""
    run = begin(problems, given)
    results = list(run.results())
    for place, found in enumerate(results):
        if len(results) > 1 and not found.estimate.exact and _worth(found, run) < _WORTH:
            alone = begin([run.problems[place]], given).result()
            spent, first = alone.cost, found.cost
            both = replace(
                spent,
                n_gradients=spent.n_gradients + first.n_gradients,
                n_forwards=spent.n_forwards + first.n_forwards,
                n_rays=spent.n_rays + first.n_rays,
                seconds=spent.seconds + first.seconds,
            )
            results[place] = replace(alone, cost=both)
    return results


def _worth(found: Explanation, run: Run) -> float:
    """The least effective rays of a feature under the input's own law, over those under the law they were drawn by."""
    if not isinstance(found.ledger, Ledger) or found.plan["estimator"] not in ("adjusted", "plain"):
        return 1.0
    mine, drawn = support(found), support(found, run.task.laws)
    moving = (found.squared_distance > 0).any(0) & (drawn > 0)
    return float((mine[moving] / drawn[moving]).min(initial=1.0))


def alike(problems: Sequence[Problem]) -> dict[object, list[int]]:
    """The places of problems that can share rays: as many features and baselines, inputs of one shape."""
    groups: dict[object, list[int]] = {}
    for place, problem in enumerate(problems):
        shapes = tuple(tuple(leaf.shape) for leaf in problem.x)
        jumps = problem.features.discrete.tobytes()
        groups.setdefault((shapes, problem.n_features, problem.baselines.n_baselines, jumps), []).append(place)
    return groups


def _inputs(xs: object) -> list[object]:
    if isinstance(xs, Tensor | np.ndarray):
        found: list[object] = list(xs) if xs.ndim > 1 else []
    else:
        found = list(xs) if isinstance(xs, list | tuple) else []
    if not found:
        got = f"shape {tuple(xs.shape)}" if isinstance(xs, Tensor | np.ndarray) else f"a {type(xs).__name__}"
        raise bad("xs", "explain_batch", "a batch of inputs (first axis) or a list with at least one", got)
    return found


def _one_each(given: Any, n: int, name: str) -> list[Any]:
    """One for each input: the same for all, or a list of as many."""
    if not isinstance(given, list):
        return [given] * n
    if len(given) != n:
        raise bad(
            name, "explain_batch", f"one for all, or a list of {n}, one for each input", f"a list of {len(given)}"
        )
    return list(given)
