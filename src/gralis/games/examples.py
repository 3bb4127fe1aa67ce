"""Multilinear games that serve as examples: sums of unanimity games, and the example of the paper's Appendix E."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gralis.errors import bad
from gralis.games.multilinear import Multilinear

__all__ = ["appendix_e", "unanimity"]


def unanimity(weights: Mapping[Any, Any], n_features: int) -> Multilinear:
    """v(S) = sum of w_T over the T within S: a sum of unanimity games, whose Moebius coefficients are the weights.

    Parameters
    ----------
    weights : mapping from iterable of int to number
        w_T by the features of T; T may not be empty.
    n_features : int
        The number of features.

    Returns
    -------
    Multilinear
        The game, callable on 0/1 masks, with x = ones and baseline = 0.

    Examples
    --------
    >>> unanimity({(0, 1): 6, (0, 1, 2): 3}, 3).shapley().tolist() == [4, 4, 1]
    True
    """
    game = Multilinear(weights, n_features)
    if () in game.coefficients:
        raise bad("weights", "unanimity", "keyed by non-empty coalitions", "the empty coalition")
    return game


def appendix_e() -> Multilinear:
    """F = 2a + 3b + c + 4ab - ac + 2bc at x = (1, 1, 1) against 0, inputs uniform on [0, 1]: the paper's example.

    Returns
    -------
    Multilinear

    Examples
    --------
    >>> F = appendix_e()
    >>> print(*F.gralis(), "|", *F.shapley(), "|", F.path_residual())
    11/4 9/2 5/4 | 7/2 6 3/2 | 5/2
    >>> print(F.mean(), F.variance(), "|", *F.first_order())
    17/4 209/48 | 49/209 144/209 9/209
    """
    return Multilinear({(0,): 2, (1,): 3, (2,): 1, (0, 1): 4, (0, 2): -1, (1, 2): 2}, 3)
