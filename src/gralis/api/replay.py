"""An explanation computed again from its provenance with a model at hand, and compared with the saved numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch

from gralis import plans, targets
from gralis.api.explain import explain, prepare
from gralis.baselines import Baselines
from gralis.checks import non_negative
from gralis.errors import GralisError, bad
from gralis.kernels import Gaussian, Kernel, Uniform, UnsavedKernel, from_dict, to_dict
from gralis.ledger import FoldedLedger
from gralis.models import Model
from gralis.models.estimator_model import estimator, is_estimator
from gralis.models.layer import descend
from gralis.plans.registry import make as make_plan
from gralis.problem import Problem
from gralis.results.explanation import Explanation
from gralis.results.replay import Replay, compared
from gralis.run import FOREVER
from gralis.targets import Target
from gralis.trees import has_trees

__all__ = ["replay", "replay_together"]

_OPTIONS: tuple[str, ...] = ("budget", "tolerance", "atol", "level", "quadrature", "n_nodes", "replicates", "seed")
_OPTIONS += ("coalition_values", "max_memory", "on_interrupt")


def replay(
    explanation: Explanation,
    model: object,
    *,
    target: Target | str = "saved",
    kernel: Kernel | None = None,
    x: object = None,
    tolerance: float | None = None,
    progress: bool | None = False,
) -> Replay:
    """Compute an explanation again from its provenance with this model, and say which hashes and numbers differ.

    Parameters
    ----------
    explanation : Explanation
        The explanation to check; `gralis.load` reads one from a file.
    model : torch.nn.Module, callable or Model
        The model that should give the same numbers.
    target : int, tuple, callable or str, default="saved"
        The output that was explained. It is needed only if it was a Python function, which a file cannot hold.
    kernel : Kernel, optional
        The kernel. It is needed only if it was Python code.
    x : tensor, array, or a tuple or dict of them, optional
        The input of the model. It is needed only if the output of a layer was explained.
    tolerance : float, optional
        The largest deviation that counts as equal, relative to the largest of |F(x)|, |F(x')| and |phi|. The default
        allows for rounding.
    progress : bool or None, default=False
        Whether to show a progress bar. None shows it only on a terminal.

    Returns
    -------
    Replay
        The verdict; it prints as a sentence.

    Examples
    --------
    >>> import gralis
    >>> model = torch.nn.Linear(3, 1).eval()
    >>> explanation = gralis.explain(model, torch.ones(3))
    >>> replay(explanation, model).same, replay(explanation, torch.nn.Linear(3, 1).eval()).hashes
    (True, ('model',))
    """
    if not isinstance(explanation, Explanation):
        raise bad("explanation", "replay", "an Explanation (gralis.load reads one)", type(explanation).__name__)
    if tolerance is not None:
        tolerance = non_negative(tolerance, "tolerance", "replay")
    _refuse_texts(explanation, model)
    saved = explanation.provenance
    output = _target(saved, target)
    if is_estimator(model) and explanation.plan["name"] != "trees":
        model = estimator(model, output)
        model = model if explanation.table is None else model.at(explanation.table)
    options = _saved_options(explanation, model, output, kernel, progress)
    layer_gap = 0.0
    if saved.get("layer") is not None or x is not None:
        model, layer_gap = _behind_layer(explanation, model, output, x)
    compute = _same_rays if not explanation.complete or _shared_rays(saved) else _same_run
    again = compute(explanation, model, options, kernel)
    return compared(explanation, again.explanation, again.hashes, tolerance, again.notes, layer_gap)


def replay_together(
    explanations: Sequence[Explanation],
    model: object,
    targets: Sequence[Target],
    tolerance: float | None,
    progress: bool | None,
) -> tuple[Replay, ...]:
    """Evaluate the rays that several explanations share once more, and compare each explanation with the saved one."""
    options = _saved_options(explanations[0], model, None, None, progress) | {"target": list(targets)}
    several = prepare(model, _packed(explanations[0]), options, "replay").again(explanations)
    pairs = zip(explanations, several, strict=True)
    return tuple(compared(e, again, again.provenance["hashes"], tolerance, (), 0.0) for e, again in pairs)


# --- computing again -------------------------------------------------------------------------------------------------


def _saved_options(
    explanation: Explanation, model: object, output: Target, kernel: Kernel | None, progress: bool | None
) -> dict[str, Any]:
    """The options of the run that made the explanation."""
    saved = explanation.provenance
    options: dict[str, Any] = {name: saved[name] for name in _OPTIONS}
    options |= {
        "max_seconds": None if saved["max_seconds"] is None else FOREVER,  # the same small replicates
        "batch_size": saved["batch_size"] or "auto",
        "baseline": _background_rows(explanation) if _of_trees(explanation, model) else _baselines(explanation),
        "features": explanation.features,
        "kernel": _kernels(explanation, kernel),
        "plan": "shared" if explanation.plan["name"] == "trees" else _plan(saved),
        "target": None if isinstance(model, Model) else output,
        "dtype": None if isinstance(model, Model) or "," in saved["dtype"] else getattr(torch, saved["dtype"]),
        "progress": progress,
    }
    return options


def _refuse_texts(explanation: Explanation, model: object) -> None:
    """Texts are explained at the presence of their features, which a network alone does not know."""
    if hasattr(model, "shown_as"):  # text.replay has made a function of the presence of features from the network
        return
    if "text" in explanation.provenance:
        raise GralisError(
            "A text was explained, and its tokenizer is needed to compute it again; use "
            "gralis.text.replay(explanation, model, tokenizer)."
        )
    embeds = callable(getattr(model, "get_input_embeddings", None))
    if embeds and explanation.features.kind == "tokens" and explanation.provenance.get("layer") is None:
        raise GralisError(
            "The encoding of a text was explained, and an explanation does not hold its token ids, so it cannot be "
            "computed again; explain the text itself with gralis.text.explain, and use gralis.text.replay."
        )


class _Recomputed(NamedTuple):
    """The explanation that was computed again, with the hashes of its run."""

    explanation: Explanation
    hashes: Mapping[str, str]
    notes: tuple[str, ...] = ()


def _same_run(e: Explanation, model: object, options: dict[str, Any], kernel: Kernel | None) -> _Recomputed:
    """Plan and evaluate from the start, then take the same steps: extended, fewer nodes, another kernel."""
    again = explain(model, _row(e) if _of_trees(e, model) else _packed(e), **options)
    hashes = again.provenance["hashes"]
    more = e.ledger.n_replicates - again.ledger.n_replicates
    if more > 0 and again.can_grow:
        again = again.extend(more * int(again.plan["rays_per_replicate"]) * max(int(again.plan["n_nodes"]), 1))
    if again.ledger.keeps_rows and (e.plan["n_nodes"] or 0) < (again.plan["n_nodes"] or 0):
        again = again.with_nodes(int(e.plan["n_nodes"]))
    wanted = e.kernel if kernel is None or not isinstance(e.kernel, UnsavedKernel) else kernel
    return _Recomputed(again if again.kernel == wanted else again.with_kernel(wanted), hashes)


def _same_rays(e: Explanation, model: object, options: dict[str, Any], kernel: Kernel | None) -> _Recomputed:
    """Evaluate the saved rays of a run that was stopped, or that served several questions, without drawing new ones."""
    saved = e if kernel is None else replace(e, design=e.design.with_kernel(kernel))
    (again,) = prepare(model, _packed(e), options, "replay").again([saved])
    why = "The run had been stopped early" if not e.complete else "Its rays had served several questions"
    note = f"{why}, so the saved rays were evaluated again and no new ones were drawn."
    return _Recomputed(again, again.provenance["hashes"], (note,))


def _shared_rays(saved: Mapping[str, Any]) -> bool:
    """Whether the rays were shared with other inputs or targets."""
    return any(count > 1 for count in saved.get("asked_together", {}).values())


def _behind_layer(e: Explanation, model: object, target: Target, x: object) -> tuple[object, float]:
    """The network behind the layer, and how far the layer's output at x lies from the one that was explained."""
    layer = e.provenance.get("layer")
    if layer is None:
        raise bad("x", "replay", "left out, since the input itself was explained", "an input")
    if x is None:
        raise GralisError(
            f"The output of the layer {layer} was explained, and the file holds that, not the model's input; "
            f"give the input: gralis.replay(explanation, model, x=...)."
        )
    problem = Problem.build(model, x, target=target)
    points = problem.pack([leaf[None] for leaf in problem.x])
    there = descend(model, layer, points, points, target)
    if there.activation.shape != e.endpoints.x[0].shape:
        shapes = f"{tuple(there.activation.shape)}, and {e.endpoints.x[0].shape} was explained"
        raise GralisError(f"The layer {layer} of this model gives shape {shapes}.")
    return there.tail, float(np.abs(there.activation.cpu().double().numpy() - e.endpoints.x[0]).max())


# --- what was explained ----------------------------------------------------------------------------------------------


def _target(saved: Mapping[str, Any], given: Target | str) -> Target:
    if not isinstance(given, str):
        return targets.check(given, "replay")
    if given != "saved":
        return targets.parse(given)
    try:
        return targets.parse(saved["target"])
    except GralisError:
        raise GralisError(
            f"The target {saved['target']!r} was a Python function, which a file cannot hold; give it again as target."
        ) from None


def _kernels(e: Explanation, given: Kernel | None) -> list[Kernel]:
    """The kernel under which the rays were drawn, which with_kernel does not change, and those of a folded ledger."""
    if isinstance(e.ledger, FoldedLedger):
        kernels = list(e.ledger.kernels)
    else:
        stored = e.provenance["kernels"][0]
        kernels = [_kernel_of_repr(stored, e) if isinstance(stored, str) else from_dict(stored)]
        if stored == to_dict(e.kernel, e.n_features):  # e.kernel may be Python code that is still at hand
            kernels = [e.kernel]
    for place, kernel in enumerate(kernels):
        if isinstance(kernel, UnsavedKernel):
            if given is None:
                raise GralisError(
                    f"The kernel {kernel.name} was Python code, which a file cannot hold; give it again as kernel."
                )
            kernels[place] = given
    return kernels


def _kernel_of_repr(text: str, e: Explanation) -> Kernel:
    """The kernel in a file that was written before kernels were stored as values: it holds their repr."""
    if text == "Uniform()":
        return Uniform()
    if gaussian := re.fullmatch(r"Gaussian\(sigma=([^,]+), distance='(relative|euclidean)'\)", text):
        return Gaussian(float(gaussian[1]), gaussian[2])  # type: ignore[arg-type]
    return e.kernel if type(e.kernel).__name__ in text else UnsavedKernel(text)


def _plan(saved: Mapping[str, Any]) -> plans.Plan:
    if saved["plan"] not in plans.names():
        raise GralisError(f"The plan {saved['plan']!r} is none of gralis.plans, so it cannot be made again.")
    return make_plan(saved["plan"], **saved.get("plan_options", {}))


def _packed(e: Explanation) -> Any:
    """x in the form in which it was given."""
    return e.form.pack([_tensor(leaf, e, i) for i, leaf in enumerate(e.endpoints.x)])


def _of_trees(e: Explanation, model: object) -> bool:
    """Whether trees are summed up again, which take the rows of the table and not their numbers."""
    return e.plan["name"] == "trees" and e.table is not None and has_trees(model)


def _row(e: Explanation) -> Any:
    """x as a row of the table."""
    assert e.table is not None
    return e.table.decode(e.endpoints.x[0][None])


def _background_rows(e: Explanation) -> Any:
    """The baselines as rows of the table; as numbers, if they have different weights."""
    assert e.table is not None
    equal = np.ptp(e.baseline_weights) == 0
    return e.table.decode(e.endpoints.baselines[0]) if equal else _baselines(e)


def _baselines(e: Explanation) -> Baselines:
    points = tuple(_tensor(leaf, e, i) for i, leaf in enumerate(e.endpoints.baselines))
    return Baselines(points, e.baseline_weights, str(e.provenance["baseline"]))


def _tensor(leaf: np.ndarray, e: Explanation, index: int) -> torch.Tensor:
    dtypes = e.provenance.get("input_dtype")  # NumPy has no bfloat16, so the array may be wider
    tensor = torch.from_numpy(np.array(leaf))
    return tensor if dtypes is None else tensor.to(getattr(torch, dtypes[index]))
