"""How a ledger is read: the kernel, the distances, the weights of the baselines, and the estimator.

An estimator turns ledger rows into values. It also says what its ledger can tell: whether there are rays, whether a
kernel enters, how many rays stand behind each value, and which columns the report needs to recompute the values.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gralis.arrays import Array
from gralis.errors import GralisError
from gralis.estimators.estimate import Estimate
from gralis.estimators.ray_weights import effective_rays, importance
from gralis.kernels import Kernel, Uniform
from gralis.laws import Law
from gralis.ledger import AnyLedger, Ledger

__all__ = ["Design", "Estimator"]


@dataclass(frozen=True, eq=False)
class Design:
    """How the ledgers of one input are read. Several questions about one input share one design.

    Attributes
    ----------
    kernel : Kernel
        The locality kernel.
    squared_distance : array of shape (n_baselines, n_features)
        The squared distance between x and each baseline, feature by feature.
    baseline_weights : array of shape (n_baselines,)
        The weight of each baseline. The weights sum to one.
    estimator : Estimator
        The estimator of the plan that drew the rays.
    """

    kernel: Kernel
    squared_distance: Array
    baseline_weights: Array
    estimator: Estimator

    @cached_property
    def laws(self) -> tuple[Law, ...]:
        """The law of coalitions for each baseline."""
        return tuple(self.kernel.bind(row) for row in self.squared_distance)

    @property
    def n_features(self) -> int:
        return int(self.squared_distance.shape[1])

    @property
    def n_baselines(self) -> int:
        return len(self.baseline_weights)

    @property
    def moving(self) -> NDArray[np.bool_]:
        """Which features differ from at least one baseline. The others change nothing."""
        return np.asarray((self.squared_distance > 0).any(0))

    def with_kernel(self, kernel: Kernel) -> Design:
        """The same design with another kernel."""
        return replace(self, kernel=kernel)

    def of_baseline(self, number: int) -> Design:
        """The design for one of the baselines by itself."""
        return replace(self, squared_distance=self.squared_distance[[number]], baseline_weights=np.ones(1))

    def estimate(self, ledger: AnyLedger) -> Estimate:
        """The values that this design reads from a ledger."""
        return self.estimator.estimates([ledger], [self])[0]


class Estimator(ABC):
    """How the rows of a plan become values. Subclass it to add an estimator; `estimates` is the only method required.

    Attributes
    ----------
    name : str
        The name under which results and files refer to this estimator.
    has_rays : bool
        Whether its ledger holds gradients along rays, so that paths and the residual can be read.
    has_kernel : bool
        Whether the kernel enters the values.
    own_law : bool
        Whether each ray counts by the law of its coalition, so that effective rays compare laws.
    bound : str or None
        The finite-sample certificate that is proved for its rows: "bernstein", "paper" or None.
    title, summary : str
        What the values are, in a word and in a sentence, for the report.
    page_formula : str or None
        The formula by which the page of the report recomputes the values from `report_columns`: "adjusted", "ratio" or
        "weighted". If it is None, the page has no slider for the kernel.
    """

    name: ClassVar[str]
    has_rays: ClassVar[bool] = True
    has_kernel: ClassVar[bool] = True
    own_law: ClassVar[bool] = False
    bound: ClassVar[str | None] = None
    title: ClassVar[str] = "GRALIS"
    summary: ClassVar[str] = "Gradients along rays from the baseline to coalitions of features, near coalitions first."
    page_formula: ClassVar[str | None] = None

    @abstractmethod
    def estimates(self, ledgers: Sequence[Any], designs: Sequence[Design]) -> tuple[Estimate, ...]:
        """The values of several questions on the same rays. Questions about one input share one design."""

    def total_of_values(self, ledger: Ledger, design: Design) -> Estimate:
        """sum_T v(T) / (|T| C(n, |T|)): what the values under the uniform kernel sum to, from coalition values."""
        raise GralisError(f"The estimator {self.name!r} cannot sum values, so the residual cannot be split.")

    def effective_rays(self, ledger: AnyLedger, design: Design) -> Array:
        """(sum W)^2 / sum W^2: how many equally weighted rays each value is worth, (n_features,)."""
        rows = ledger.require_rows("Counting effective rays")
        weights = importance(rows, design.laws, design.baseline_weights)
        return effective_rays(weights[rows.replicate >= 0])

    def serving(self, ledger: Ledger) -> Array:
        """The number of sampled rays that inform the value of each feature, (n_features,)."""
        return np.asarray(ledger.masks[ledger.replicate >= 0].sum(0))

    def known_share(self, ledger: Ledger, design: Design) -> Array:
        """The share of each feature's law that needs no sampling, (n_features,)."""
        return np.zeros(design.n_features)

    def contributions(self, ledger: Ledger, design: Design) -> Array | None:
        """What every ray adds to its replicate, (n_rays, n_features); None if the values are not sums over rays."""
        return importance(ledger, design.laws, design.baseline_weights) * ledger.rays

    def evidence(self, n_replicates: int) -> str:
        """A phrase that says from what the errors of the values are estimated."""
        return f"the max-t quantile of {n_replicates} replicates"

    def most_budget(self, design: Design) -> float:
        """The largest useful budget: what it costs to enumerate all coalitions, or infinity if the plan never does."""
        return np.inf

    def report_columns(self, ledger: Ledger, design: Design) -> dict[str, NDArray[Any]]:
        """The columns from which the report recomputes the values under another kernel."""
        columns = {name: getattr(ledger, name) for name in ("masks", "log_rate", "replicate", "baseline", "owner")}
        return {**columns, "rays": ledger.rays}


def uniform_laws(design: Design) -> tuple[Law, ...]:
    """The laws of the uniform kernel on the same distances."""
    return design.with_kernel(Uniform()).laws
