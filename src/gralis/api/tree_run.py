"""Explanations of tree ensembles: closed-form sums over all rays. Nothing is sampled, and no model is called."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gralis.api.tree_problem import TreeProblem, is_margin, outputs_of
from gralis.arrays import Array
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
from gralis.targets import Target, describe
from gralis.trees import TreeEnsemble, has_trees, phi_of_rows, read, singles_of_rows

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


_TIMED = 20  # trees that an estimate of the cost looks at
_N_ROUNDINGS = 8  # a sum over trees and baselines carries several rounding errors


class TreeRun:
    """Computes the explanations of one row for one or several outputs of a tree ensemble, or of several rows."""

    def __init__(
        self,
        trees: TreeEnsemble,
        x: object,
        kernels: tuple[Kernel, ...],
        plan: Plan,
        options: Mapping[str, Any],
        several: bool = False,
    ) -> None:
        asked = (trees, x, options["baseline"], options["features"])
        self.problems = TreeProblem.of_table(*asked) if several else [TreeProblem.build(*asked)]
        self.problem = self.problems[0]
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
        with Bar(self._progress, self.problem.trees.n_trees * len(self._outputs), "tree") as bar:
            found = [self._together([self.problem], output, bar)[0] for output in self._outputs]
        return tuple(found)

    @property
    def bytes(self) -> int:
        """The memory of the trees, and of the directions of the baselines at their nodes."""
        trees = self.problem.trees
        return sum(array.nbytes for array in trees.arrays().values()) + trees.n_nodes * len(self.problem.baselines)

    def seconds(self) -> float:
        """The time of all explanations, as some of the trees take it. The functions are compiled or loaded first."""
        problem = self.problem
        count = min(problem.trees.n_trees, _TIMED)
        some = problem.trees.trees(np.linspace(0, problem.trees.n_trees - 1, count).astype(np.int64)).select(0)
        phi_of_rows(some, problem.x[None], problem.baselines[:1], self.kernel)
        clock = Stopwatch(None)
        phi_of_rows(some, problem.x[None], problem.baselines, self.kernel, problem.weights)
        return clock.seconds * problem.trees.n_trees / max(count, 1) * len(self._outputs)

    def of_rows(self, targets: Sequence[Any]) -> tuple[Explanation, ...]:
        """One explanation per row, with one target each. Rows of the same output are summed up together."""
        trees, problems = self.problem.trees, self.problems
        asked = [outputs_of(trees, one.x, target)[0] for one, target in zip(problems, targets, strict=True)]
        found: dict[int, Explanation] = {}
        with Bar(self._progress, trees.n_trees * len(problems), "tree") as bar:
            for output in dict.fromkeys(asked):
                places = [place for place, own in enumerate(asked) if own == output]
                found.update(zip(places, self._together([problems[k] for k in places], output, bar), strict=True))
        return tuple(found[place] for place in range(len(problems)))

    def _together(
        self, problems: Sequence[TreeProblem], output: tuple[Target, int, float], bar: Bar
    ) -> list[Explanation]:
        """The explanations of rows for one output. Shapley values of many rows together cost little beside phi."""
        clock, every, rows = Stopwatch(None), self.problem, np.stack([one.x for one in problems])
        target, number, sign = output
        trees = every.trees.select(number, sign)
        bar.add((every.trees.n_trees - trees.n_trees) * len(rows))
        f_x, f_baselines = trees.outputs(rows)[:, 0], trees.outputs(every.baselines)[:, 0]
        phi = phi_of_rows(trees, rows, every.baselines, self.kernel, every.weights, bar.add)[:, 0]
        beside: list[Array | None] = [None] * len(rows)
        if len(rows) > 1:
            beside = list(singles_of_rows(trees, rows, every.baselines, baseline_weights=every.weights)[:, 0])
        fingerprint = every.trees.fingerprint()
        about = {"trees": every.trees.source, "n_trees": trees.n_trees, "depth": trees.depth}
        same = (target, trees, f_baselines, about, fingerprint, clock.seconds / len(rows))
        return [
            self._explanation(one, values, shapley, value, *same)
            for one, values, shapley, value in zip(problems, phi, beside, f_x, strict=True)
        ]

    def _explanation(
        self,
        problem: TreeProblem,
        phi: Array,
        shapley: Array | None,
        f_x: float,
        target: Target,
        trees: TreeEnsemble,
        f_baselines: Array,
        about: Mapping[str, Any],
        fingerprint: str,
        seconds: float,
    ) -> Explanation:
        ledger = TreeLedger(trees, problem.x, problem.baselines, problem.weights, shapley)
        design = Design(self.kernel, problem.squared_distance, problem.weights, TREES, None, _rounding(trees))
        estimate = Estimate(phi, np.zeros((1, trees.n_features)), "sum over trees", exact=True)
        question = problem.as_problem((target,))
        hashes = {**question.fingerprints(), "model": fingerprint}
        asked = provenance(question, 0, self.kernels, self.plan, self.options, hashes=hashes, n_inputs=1)
        return Explanation(
            estimate=design.completed(ledger, estimate),
            design=design,
            ledger=ledger,
            features=problem.features,
            f_x=float(f_x),
            f_baselines=f_baselines,
            endpoints=question.endpoints,
            cost=Cost(seconds=seconds, peak_bytes=peak_bytes()),
            plan={"name": "trees", "estimator": TREES.name, "quadrature": None, "n_nodes": None, **about},
            provenance={**asked, "class": problem.class_of(target)},
            table=question.table,
            reached=None if self.options.tolerance is None else True,
        )


def _rounding(trees: TreeEnsemble) -> float:
    """The size of a rounding error of F: all trees at their largest leaves, in float64."""
    if not trees.n_trees:
        return 0.0
    largest = np.maximum.reduceat(np.abs(trees.effective[:, 0]), trees.roots)
    return float(_N_ROUNDINGS * np.finfo(np.float64).eps * (largest.sum() + abs(trees.base[0] / trees.divisor)))
