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
from gralis.estimators.node_error import node_errors
from gralis.estimators.one_thread import one_thread
from gralis.estimators.ray_weights import effective_rays, importance
from gralis.estimators.witnesses import known_checksum, missed_alone, missed_by_draws, missed_by_nodes
from gralis.kernels import Kernel, Uniform
from gralis.laws import Law
from gralis.ledger import AnyLedger, Ledger

__all__ = ["Design", "Estimator", "estimates"]

AT_ROUNDING = 1e-12  # of the largest value: a quadrature error below this is not told apart from rounding
N_ROUNDINGS = 8  # a ray is a sum over nodes, so that it may carry several rounding errors


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
    quadrature : str or None, default=None
        The name of the rule that placed the nodes; None if the plan has no nodes.
    rounding : float, default=0.0
        The size of a rounding error of F: the precision of the model's numbers times the size of F.
    noise : float, default=0.0
        How far apart the answers of the model to one question were; 0 if it is a function of its input.
    """

    kernel: Kernel
    squared_distance: Array
    baseline_weights: Array
    estimator: Estimator
    quadrature: str | None = None
    rounding: float = 0.0
    noise: float = 0.0

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

    @property
    def has_fixed_nodes(self) -> bool:
        """Whether the nodes on the rays were placed by a fixed rule, whose error no replicate shows."""
        return self.estimator.has_rays and self.quadrature not in (None, "random")

    def with_kernel(self, kernel: Kernel) -> Design:
        """The same design with another kernel."""
        return replace(self, kernel=kernel)

    def of_baseline(self, number: int) -> Design:
        """The design for one of the baselines by itself."""
        return replace(self, squared_distance=self.squared_distance[[number]], baseline_weights=np.ones(1))

    def estimate(self, ledger: AnyLedger) -> Estimate:
        """The values that this design reads from a ledger, with everything that may be wrong with them."""
        return estimates([ledger], [self])[0]

    def fixed_node_error(self, ledger: AnyLedger) -> Array:
        """The estimated quadrature error of each value: 0 for random nodes, NaN if nothing shows it, (n_features,)."""
        nothing = np.zeros(self.n_features)
        if not self.has_fixed_nodes:
            return nothing
        rows = ledger.kept_rows
        if rows is None:
            return np.where(self.moving, np.nan, nothing)
        shares = np.abs(self.estimator.shares(rows, self))
        return np.asarray((shares * np.where(shares > 0, self.ray_errors(rows), 0.0)).sum(0))

    def ray_errors(self, rows: Ledger) -> Array:
        """The estimated error of fixed nodes on every ray, 0 where no node matters, (n_rays, n_features)."""
        errors = node_errors(rows, str(self.quadrature))
        if self.estimator.singles_by_value:
            errors = np.where(((rows.sizes == 1) & np.isfinite(rows.value))[:, None], 0.0, errors)
        return np.asarray(errors)

    def missed(self, ledger: AnyLedger) -> Array:
        """What random nodes clearly missed of each value, by the checksum of Lemma A; 0 where nothing shows, (n,)."""
        rows = ledger.kept_rows
        if self.quadrature != "random" or rows is None or not self.estimator.has_rays:
            return np.zeros(self.n_features)
        missed = self.estimator.missed(rows, self)
        return np.where(missed > N_ROUNDINGS * self.rounding, missed, 0.0)

    def completed(self, ledger: AnyLedger, estimate: Estimate) -> Estimate:
        """The estimate with the error of fixed nodes, with what random nodes missed, and with rounding."""
        margin = self.fixed_node_error(ledger) + self.missed(ledger)
        rows = ledger.kept_rows
        if rows is not None and self.estimator.draws_rays:
            for missed in (missed_by_draws, missed_alone):
                margin = margin + missed(rows, self.laws, self.baseline_weights)
        return self.allowing(estimate, margin)

    def allowing(self, estimate: Estimate, margin: Array) -> Estimate:
        """The estimate with this margin, and the model's noise and rounding; exact values stay exact up to rounding.

        A value is a mean of differences of two values of F, each of which may be off by half of the noise.
        """
        rounding, margin = (np.where(self.moving, part, 0.0) for part in (self.rounding, margin + self.noise))
        largest = np.abs(estimate.values).max(initial=0.0)
        if estimate.exact and (margin <= AT_ROUNDING * largest + N_ROUNDINGS * self.rounding).all():
            return estimate.with_rounding(rounding + margin)
        return estimate.with_margin(margin).with_rounding(rounding)


@one_thread()
def estimates(ledgers: Sequence[AnyLedger], designs: Sequence[Design]) -> tuple[Estimate, ...]:
    """The values of several questions on the same rays, with everything that may be wrong with them."""
    read = designs[0].estimator.estimates(ledgers, designs)
    return tuple(
        design.completed(ledger, estimate) for ledger, design, estimate in zip(ledgers, designs, read, strict=True)
    )


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
    singles_by_value : bool
        Whether the ray of a single feature is taken from its value (Lemma A), so that its nodes do not matter.
    draws_rays : bool
        Whether coalitions are drawn from the law, so that one that matters may be missing.
    departs_by_replicate : bool
        Whether there is one departure for each replicate, so that two results of the same replicates can be paired.
    bound : str or None
        The finite-sample certificate that is proved for its rows: "bernstein", "paper" or None.
    no_certificate : str or None
        Why no certificate of any kind can be given, as a sentence, if its rays were not drawn at random.
    title, summary : str
        What the values are, in a word and in a sentence, for the report.
    page_formula : str or None
        The formula by which the page of the report recomputes the values from `report_columns`: "adjusted", "copies",
        "ratio" or "weighted". If it is None, the page has no slider for the kernel.
    without_sampling : str
        A phrase that says from what values without sampling error come.
    """

    name: ClassVar[str]
    has_rays: ClassVar[bool] = True
    has_kernel: ClassVar[bool] = True
    own_law: ClassVar[bool] = False
    singles_by_value: ClassVar[bool] = False
    draws_rays: ClassVar[bool] = False
    departs_by_replicate: ClassVar[bool] = True
    bound: ClassVar[str | None] = None
    no_certificate: ClassVar[str | None] = None
    title: ClassVar[str] = "GRALIS"
    summary: ClassVar[str] = "Gradients on lines from the baseline to coalitions; those near the baseline count more."
    page_formula: ClassVar[str | None] = None
    without_sampling: ClassVar[str] = "the enumeration of all coalitions"

    @abstractmethod
    def estimates(self, ledgers: Sequence[Any], designs: Sequence[Design]) -> tuple[Estimate, ...]:
        """The values of several questions on the same rays. Questions about one input share one design."""

    def total_of_values(self, ledger: Any, design: Design) -> Estimate:
        """sum_T v(T) / (|T| C(n, |T|)): what the values under the uniform kernel sum to, from coalition values."""
        raise GralisError(f"The estimator {self.name!r} cannot sum values, so the residual cannot be split.")

    def effective_rays(self, ledger: AnyLedger, design: Design) -> Array:
        """(sum W)^2 / sum W^2: how many equally weighted rays each value is worth, (n_features,)."""
        rows = ledger.require_rows("Counting effective rays")
        weights = importance(rows, design.laws, design.baseline_weights)
        return effective_rays(weights[rows.replicate >= 0])

    def shares(self, ledger: Ledger, design: Design) -> Array:
        """The weight of every ray in each value: value_i = sum over rays of share_i ray_i, (n_rays, n_features)."""
        weights = importance(ledger, design.laws, design.baseline_weights)
        return np.where((ledger.replicate >= 0)[:, None], weights, 0.0) / max(ledger.n_replicates, 1)

    def missed(self, ledger: Ledger, design: Design) -> Array:
        """What random nodes clearly missed of each value; 0 where nothing shows, (n_features,)."""
        return missed_by_nodes(ledger, self.shares(ledger, design))

    def serving(self, ledger: Ledger) -> Array:
        """The number of sampled rays that inform the value of each feature, (n_features,)."""
        return np.asarray(ledger.masks[ledger.replicate >= 0].sum(0))

    def enumerates(self, ledger: Ledger) -> bool:
        """Whether its values are sums over all coalitions, so that none was drawn."""
        return False

    def known_share(self, ledger: Ledger, design: Design) -> Array:
        """The share of each feature's law that needs no sampling, (n_features,)."""
        return np.full(design.n_features, 1.0 if self.enumerates(ledger) else 0.0)

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
        """The columns from which the report recomputes the values and their margins under another kernel."""
        names = ("masks", "log_rate", "replicate", "baseline", "owner")
        columns: dict[str, NDArray[Any]] = {name: getattr(ledger, name) for name in names}
        if design.has_fixed_nodes:
            columns["node_error"] = design.ray_errors(ledger)
        elif self.has_rays and design.quadrature == "random":
            columns["checksum"] = known_checksum(ledger)
        return {**columns, "rays": ledger.rays}


def uniform_laws(design: Design) -> tuple[Law, ...]:
    """The laws of the uniform kernel on the same distances."""
    return design.with_kernel(Uniform()).laws
