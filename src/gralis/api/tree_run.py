"""Explanations of tree ensembles: closed-form sums over all rays. Nothing is sampled, and no model is called."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gralis.api.tree_problem import TreeProblem, is_margin, outputs_of
from gralis.errors import GralisError
from gralis.estimators import TREES, Design, Estimate
from gralis.evaluation.clock import Stopwatch
from gralis.evaluation.cost import Cost, peak_bytes
from gralis.evaluation.progress import Bar
from gralis.kernels import Kernel
from gralis.ledger import TreeLedger
from gralis.options import Options
from gralis.plans import Plan
from gralis.results.explanation import Explanation
from gralis.results.provenance import provenance
from gralis.targets import describe
from gralis.trees import TreeEnsemble, has_trees, phi_of_rows, read

__all__ = ["TreeRun", "trees_behind"]


def trees_behind(model: object, options: Mapping[str, Any]) -> TreeEnsemble | None:
    """The trees of the model if they can be summed up in closed form for these options, otherwise None.

    A plan other than the default asks for sampled or enumerated coalitions, and a target that is not a raw output has
    no closed form. Trees that cannot be read are explained by sampling, as every other estimator.
    """
    if not has_trees(model) or options["plan"] != "shared" or not is_margin(options["target"]):
        return None
    if options["layer"] is not None:
        raise GralisError("A tree ensemble has no layers; explain it without layer=.")
    try:
        return read(model)
    except GralisError:
        if isinstance(model, TreeEnsemble):
            raise
        return None


class TreeRun:
    """Computes the explanations of one row for one or several outputs of a tree ensemble."""

    def __init__(
        self, trees: TreeEnsemble, x: object, kernels: tuple[Kernel, ...], plan: Plan, options: Mapping[str, Any]
    ) -> None:
        self.problem = TreeProblem.build(trees, x, options["baseline"], options["features"])
        self.kernel, self.kernels, self.plan = kernels[0], kernels, plan
        self.options, self._progress = Options.checked(options), options["progress"]
        self._outputs = outputs_of(self.problem.trees, self.problem.x, options["target"])

    @property
    def targets(self) -> tuple[Any, ...]:
        """The targets, one per explanation."""
        return tuple(target for target, _, _ in self._outputs)

    @property
    def labels(self) -> tuple[str, ...]:
        """What every target is called: the name of its class, or its description."""
        return tuple(self.problem.class_of(target) or describe(target) for target in self.targets)

    def results(self) -> tuple[Explanation, ...]:
        """One explanation per output."""
        total = self.problem.trees.n_trees * len(self._outputs)
        with Bar(self._progress, total, "tree") as bar:
            return tuple(self._explanation(number, bar) for number in range(len(self._outputs)))

    def _explanation(self, number: int, bar: Bar) -> Explanation:
        clock, problem = Stopwatch(None), self.problem
        _, output, sign = self._outputs[number]
        trees = problem.trees.select(output, sign)
        bar.add(problem.trees.n_trees - trees.n_trees)
        ledger = TreeLedger(trees, problem.x, problem.baselines, problem.weights)
        f_x, f_baselines = float(trees.outputs(problem.x[None])[0, 0]), trees.outputs(problem.baselines)[:, 0]
        design = Design(self.kernel, problem.squared_distance, problem.weights, TREES, None, _rounding(trees))
        rows = phi_of_rows(trees, problem.x[None], problem.baselines, self.kernel, problem.weights, bar.add)
        estimate = Estimate(rows[0, 0], np.zeros((1, trees.n_features)), "sum over trees", exact=True)
        question = problem.as_problem(self.targets)
        hashes = {**question.fingerprints(), "model": problem.trees.fingerprint()}
        about = {"trees": problem.trees.source, "n_trees": trees.n_trees, "depth": trees.depth}
        asked = provenance(question, number, self.kernels, self.plan, self.options, hashes=hashes, n_inputs=1)
        return Explanation(
            estimate=design.completed(ledger, estimate),
            design=design,
            ledger=ledger,
            features=problem.features,
            f_x=f_x,
            f_baselines=f_baselines,
            endpoints=question.endpoints,
            cost=Cost(seconds=clock.seconds, peak_bytes=peak_bytes()),
            plan={"name": "trees", "estimator": TREES.name, "quadrature": None, "n_nodes": None, **about},
            provenance={**asked, "class": problem.class_of(self.targets[number])},
            table=question.table,
            reached=None if self.options.tolerance is None else True,
        )


def _rounding(trees: TreeEnsemble) -> float:
    """The size of a rounding error of F: all trees at their largest leaves, in float64."""
    if not trees.n_trees:
        return 0.0
    largest = np.maximum.reduceat(np.abs(trees.effective[:, 0]), trees.roots)
    return float(np.finfo(np.float64).eps * (largest.sum() + abs(trees.base[0] / trees.divisor)))
