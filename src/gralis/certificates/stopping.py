"""When a run with a tolerance may stop: a few looks at its error, each paid for out of 1 - level."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gralis.certificates.simultaneous import half_widths
from gralis.estimators import Estimate
from gralis.options import Options

_N_LOOKS = 5


@dataclass(frozen=True)
class Looks:
    """After how many replicates to look: about geometric, the last one the end.

    A look spends of 1 - level in proportion to its replicates: late looks are where runs stop, and their intervals
    should not be much wider than without any looking.
    """

    at: tuple[int, ...]

    @classmethod
    def between(cls, first: int, last: int) -> Looks:
        """Of a run from replicate `first` to `last`.

        >>> Looks.between(0, 60).at
        (4, 7, 15, 30, 60)
        """
        least = min(max(4, first + 1), last)
        return cls(tuple(int(look) for look in np.unique(np.geomspace(least, last, _N_LOOKS).astype(int))))

    def __contains__(self, n_replicates: int) -> bool:
        return n_replicates in self.at

    def price(self, n_replicates: int) -> float:
        """1 / the share of 1 - level that the look at n_replicates, or the next one after it, may spend."""
        upcoming = [look for look in self.at if look >= n_replicates] or [self.at[-1]]
        return sum(self.at) / upcoming[0]


def reached(found: Estimate, delta: float, options: Options, price: float) -> bool | None:
    """Whether every simultaneous half-width is small enough, at a level that pays for this look.

    None: no tolerance was asked for.
    """
    if options.tolerance is None:
        return None
    if found.exact:
        return True
    half = half_widths(found, 1 - (1 - options.level) / price)
    return bool(half.max() <= max(options.atol, options.tolerance * abs(delta)))
