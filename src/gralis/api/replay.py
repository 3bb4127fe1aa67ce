"""The same numbers again? An explanation recomputed from its provenance with a model at hand, and compared."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from gralis import plans, targets
from gralis.api.explain import explain, prepare
from gralis.baselines import Baselines
from gralis.errors import GralisError, bad
from gralis.files.archive import Forgotten
from gralis.kernels import Gaussian, Kernel, Uniform
from gralis.ledger import FoldedLedger, Ledger
from gralis.models import Model
from gralis.models.layer import descend
from gralis.problem import Problem
from gralis.results.explanation import Explanation
from gralis.results.replay import Replay, compared
from gralis.targets import Target

_FOREVER = 1e9  # seconds: a run with a time limit draws small replicates, and must draw the same again
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
    """Compute an explanation again from its provenance with this model: the same, or which hash and which number not.

    >>> import gralis
    >>> model = torch.nn.Linear(3, 1).eval()
    >>> explanation = gralis.explain(model, torch.ones(3))
    >>> replay(explanation, model).same, replay(explanation, torch.nn.Linear(3, 1).eval()).hashes
    (True, ('model',))

    `target` and `kernel` are needed where they were Python code, and x (the model's own input) where a layer was
    explained. `tolerance` is relative to the largest of |F(x)|, |F(x')|, |phi|; its default allows for rounding.
    """
    if not isinstance(explanation, Explanation):
        raise bad("explanation", "replay", "an Explanation (gralis.load reads one)", type(explanation).__name__)
    if tolerance is not None and (isinstance(tolerance, bool) or not 0 <= tolerance < np.inf):
        raise bad("tolerance", "replay", "None or a number >= 0", repr(tolerance))
    saved = explanation.provenance
    goal = _target(saved, target)
    options: dict[str, Any] = {name: saved[name] for name in _OPTIONS}
    options |= {
        "max_seconds": None if saved["max_seconds"] is None else _FOREVER,
        "batch_size": saved["batch_size"] or "auto",
        "baseline": _baselines(explanation),
        "features": explanation.features,
        "kernel": _kernels(explanation, kernel),
        "plan": _plan(saved),
        "target": None if isinstance(model, Model) else goal,
        "dtype": None if isinstance(model, Model) or "," in saved["dtype"] else getattr(torch, saved["dtype"]),
        "progress": progress,
    }
    apart = 0.0
    if saved.get("layer") is not None or x is not None:
        model, apart = _behind_layer(explanation, model, goal, x)
    again = _rows_again if not explanation.complete or _together(saved) else _run_again
    found, hashes, notes = again(explanation, model, options, kernel)
    return compared(explanation, found, hashes, tolerance, notes, apart)


# --- computing again -------------------------------------------------------------------------------------------------

_Found = tuple[Explanation, Mapping[str, str], tuple[str, ...]]


def _run_again(e: Explanation, model: object, options: dict[str, Any], kernel: Kernel | None) -> _Found:
    """Plan and evaluate from the start, then take the same steps: extended, fewer nodes, another kernel."""
    found = explain(model, _packed(e), **options)
    hashes = found.provenance["hashes"]
    more = e.ledger.n_replicates - found.ledger.n_replicates
    if more > 0 and not found.estimate.exact:
        found = found.extend(more * int(found.plan["rays_per_replicate"]) * max(int(found.plan["n_nodes"]), 1))
    if isinstance(found.ledger, Ledger) and (e.plan["n_nodes"] or 0) < (found.plan["n_nodes"] or 0):
        found = found.with_nodes(int(e.plan["n_nodes"]))
    wanted = e.kernel if kernel is None or not isinstance(e.kernel, Forgotten) else kernel
    return (found if found.kernel == wanted else found.with_kernel(wanted)), hashes, ()


def _rows_again(e: Explanation, model: object, options: dict[str, Any], kernel: Kernel | None) -> _Found:
    """The rows of a run that was stopped, or that served several questions: they are evaluated, not drawn again."""
    found = prepare(model, _packed(e), options, "replay").again(e if kernel is None else replace(e, kernel=kernel))
    why = "The run had been stopped early" if not e.complete else "Its rays had served several questions"
    note = f"{why}, so its own rays were evaluated again, not drawn again."
    return found, found.provenance["hashes"], (note,)


def _together(saved: Mapping[str, Any]) -> bool:
    """Whether the rays were shared with other inputs or targets."""
    return any(count > 1 for count in saved.get("asked_together", {}).values())


def _behind_layer(e: Explanation, model: object, goal: Target, x: object) -> tuple[object, float]:
    """The network behind the layer, and how far the layer's output at x lies from the one that was explained."""
    layer = e.provenance.get("layer")
    if layer is None:
        raise bad("x", "replay", "left out, since the input itself was explained", "an input")
    if x is None:
        raise GralisError(
            f"The output of the layer {layer} was explained, and the file holds that, not the model's input; "
            f"give the input: gralis.replay(explanation, model, x=...)."
        )
    own = Problem.build(model, x, target=goal)
    points = own.pack([leaf[None] for leaf in own.x])
    there = descend(model, layer, points, points, goal)
    if there.activation.shape != e.endpoints.x[0].shape:
        shapes = f"{tuple(there.activation.shape)}, and {e.endpoints.x[0].shape} was explained"
        raise GralisError(f"The layer {layer} of this model gives shape {shapes}.")
    return there.tail, float(np.abs(there.activation.cpu().double().numpy() - e.endpoints.x[0]).max())


# --- what was asked --------------------------------------------------------------------------------------------------


def _target(saved: Mapping[str, Any], given: Target | str) -> Target:
    if given != "saved":
        return targets.parse(given) if isinstance(given, str) else given
    try:
        return targets.parse(saved["target"])
    except GralisError:
        raise GralisError(
            f"The target {saved['target']!r} was a Python function, which a file cannot hold; give it again as target."
        ) from None


def _kernels(e: Explanation, given: Kernel | None) -> list[Kernel]:
    """The kernel under which the rays were drawn, which with_kernel does not change, and those of a folded ledger."""
    if isinstance(e.ledger, FoldedLedger):
        return [given or kernel if isinstance(kernel, Forgotten) else kernel for kernel in e.ledger.kernels]
    name = str(e.provenance["kernels"][0])
    if name == "Uniform()":
        return [Uniform()]
    if found := re.fullmatch(r"Gaussian\(sigma=([^,]+), distance='(relative|euclidean)'\)", name):
        return [Gaussian(float(found[1]), "relative" if found[2] == "relative" else "euclidean")]
    if given is None and (isinstance(e.kernel, Forgotten) or type(e.kernel).__name__ not in name):
        raise GralisError(f"The kernel {name} was Python code, which a file cannot hold; give it again as kernel.")
    return [given or e.kernel]


def _plan(saved: Mapping[str, Any]) -> plans.Plan:
    makers = {name: getattr(plans, name) for name in plans.__all__ if name.islower()}
    if saved["plan"] not in makers or saved["plan"] in ("as_plan", "whole"):
        raise GralisError(f"The plan {saved['plan']!r} is none of gralis.plans, so it cannot be made again.")
    plan: plans.Plan = makers[saved["plan"]](**saved.get("plan_options", {}))
    return plan


def _packed(e: Explanation) -> Any:
    """x in the form in which it was given."""
    leaves = [_tensor(leaf, e, i) for i, leaf in enumerate(e.endpoints.x)]
    if e.leaf_keys is not None:
        return dict(zip(e.leaf_keys, leaves, strict=True))
    return tuple(leaves) if e.several_leaves else leaves[0]


def _baselines(e: Explanation) -> Baselines:
    points = tuple(_tensor(leaf, e, i) for i, leaf in enumerate(e.endpoints.baselines))
    return Baselines(points, e.baseline_weights, str(e.provenance["baseline"]))


def _tensor(leaf: np.ndarray, e: Explanation, index: int) -> torch.Tensor:
    dtypes = e.provenance.get("input_dtype")  # NumPy has no bfloat16, so the array may be wider
    tensor = torch.from_numpy(np.array(leaf))
    return tensor if dtypes is None else tensor.to(getattr(torch, dtypes[index]))
