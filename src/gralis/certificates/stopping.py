"""When a run with a tolerance may stop: it looks at its error a few times, and each look uses a share of 1 - level."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gralis.certificates.simultaneous import half_widths
from gralis.estimators import Estimate

_N_LOOKS = 5


@dataclass(frozen=True)
class Looks:
    """After how many replicates a run looks at its error. The looks are spaced about geometrically.

    Each look uses a share of 1 - level that is proportional to its number of replicates. Most runs stop at a late look,
    and the intervals there should not be much wider than those of a run that never looks.

    Attributes
    ----------
    at : tuple of int
        The numbers of replicates. The last one is the end of the run.
    """

    at: tuple[int, ...]

    @classmethod
    def between(cls, first: int, last: int) -> Looks:
        """The looks of a run from replicate `first` to replicate `last`.

        >>> Looks.between(0, 60).at
        (4, 7, 15, 30, 60)
        """
        least = min(max(4, first + 1), last)
        between = np.geomspace(least, float(last), _N_LOOKS)[:-1]  # as floats: last may be larger than an int64
        return cls(tuple(sorted({*map(int, between), last})))

    def __contains__(self, n_replicates: int) -> bool:
        return n_replicates in self.at

    def price(self, n_replicates: int) -> float:
        """1 / the share of 1 - level that the look at n_replicates, or else the next look, may use."""
        upcoming = [look for look in self.at if look >= n_replicates] or [self.at[-1]]
        return sum(self.at) / upcoming[0]


def reached(estimate: Estimate, wanted: float, level: float) -> bool:
    """Whether every simultaneous half-width at `level` is at most `wanted`."""
    return estimate.exact or bool(half_widths(estimate, level).max() <= wanted)
