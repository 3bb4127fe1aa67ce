"""Complete paths that are not monotone give attributions that no ensemble of monotone paths gives.

For F = x_1 x_2 on a path from (0, 0) to (1, 1), A_1 is the integral of x_2 dx_1 and A_2 the integral of x_1 dx_2. On a
monotone path both integrands lie in [0, 1] and neither coordinate ever decreases. Hence 0 <= A_1 <= 1, also for a mean
over monotone paths.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

import numpy as np

from gralis.paper.claim_row import ClaimRow, arithmetic, collect, equal

Corner = tuple[Fraction, Fraction]

#: A path that goes up beyond the end, across, and back down: the second coordinate decreases on the last piece.
_BEYOND = tuple((Fraction(a), Fraction(b)) for a, b in ((0, 0), (0, 2), (1, 2), (1, 1)))
#: A path that goes once around the unit square before it goes to the far corner; it never leaves the box of x' and x.
_AROUND = tuple((Fraction(a), Fraction(b)) for a, b in ((0, 0), (0, 1), (1, 1), (1, 0), (0, 0), (0, 1), (1, 1)))
_STAIRCASES = 200


def rows() -> list[ClaimRow]:
    return collect(_attributions)


@arithmetic
def _attributions() -> list[ClaimRow]:
    rng = np.random.default_rng(0)
    shares = [attribution(_staircase(rng)) for _ in range(_STAIRCASES)]
    inside = all(0 <= a <= 1 and a + b == 1 for a, b in shares)
    source = "Sec. lundstrom-position"
    return [
        equal("F = x1 x2, up to 2 and back: A", (2, -1), attribution(_BEYOND), source),
        equal("its sum is F(x) - F(x')", 1, sum(attribution(_BEYOND)), source),
        equal("inside the box, once around: A", (2, -1), attribution(_AROUND), source),
        equal("200 random monotone paths: complete, with A_1 in [0, 1]", True, inside, source),
    ]


def attribution(path: Sequence[Corner]) -> tuple[Fraction, Fraction]:
    """A for F = x_1 x_2 along straight pieces: on each piece, the mean of the other coordinate times the step.

    >>> attribution(((Fraction(0), Fraction(0)), (Fraction(1), Fraction(1))))
    (Fraction(1, 2), Fraction(1, 2))
    """
    first = second = Fraction(0)
    for (a, b), (c, d) in pairwise(path):
        first += (b + d) / 2 * (c - a)
        second += (a + c) / 2 * (d - b)
    return first, second


def _staircase(rng: np.random.Generator) -> list[Corner]:
    """A monotone path from (0, 0) to (1, 1) with five random corners between them."""
    a, b = (sorted(Fraction(int(k), 100) for k in rng.integers(0, 101, 5)) for _ in range(2))
    start, end = (Fraction(0), Fraction(0)), (Fraction(1), Fraction(1))
    return [start, *zip(a, b, strict=True), end]
