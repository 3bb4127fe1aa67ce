"""Bad parameters of games and functions are refused in one sentence."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from gralis import GralisError
from gralis.games import Airport, Glove, Ishigami, Multilinear, SobolG, appendix_e


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Multilinear({(0, 3): 1}, 3), "'coefficients' .* 0..2"),
        (lambda: Multilinear({(0, 0): 1}, 3), "none twice"),
        (lambda: Multilinear({"a": 1}, 3), "feature indices"),
        (lambda: Multilinear({0: 1}, 3), "feature indices"),
        (lambda: Multilinear([1, 2], 3), "a mapping"),
        (lambda: Multilinear({(0,): float("nan")}, 3), "finite real"),
        (lambda: Multilinear({(0,): 1}, 0), "'n_features'"),
        (lambda: Multilinear({(0,): 1}, 2, x=(1, 2, 3)), "'x' .* 2 in all"),
        (lambda: Multilinear({(0,): 1}, 2, baseline="zero"), "'baseline'"),
        (lambda: Multilinear({(0,): 1}, 2, bounds=(1, 0)), "low < high"),
        (lambda: Multilinear({(0,): 1}, 2, bounds=[(0, 1)]), "2 in all"),
        (lambda: Multilinear({(0,): 1}, 2, bounds=3), "'bounds'"),
        (lambda: appendix_e()(np.ones(3)), r"\(rows, 3\)"),
        (lambda: appendix_e().value([5]), "'members'"),
        (lambda: appendix_e().interactions(4), "'order' .* 1 to the 3"),
        (lambda: Ishigami(a="7"), "'a' .* Ishigami"),
        (lambda: Ishigami()(np.ones((2, 2))), r"\(rows, 3\)"),
        (lambda: SobolG([]), "at least one"),
        (lambda: SobolG([1, -1]), ">= 0"),
        (lambda: SobolG([1, 2])(torch.ones(2, 3)), r"\(rows, 2\)"),
        (lambda: Airport([]), "at least one"),
        (lambda: Airport([1, -2]), ">= 0"),
        (lambda: Airport(3), "sequence"),
        (lambda: Airport(range(1, 30)).moebius(), "at most 20"),
        (lambda: Airport([1, 2])(np.ones((3, 3))), "0/1 rows"),
        (lambda: Airport([1, 2])(np.full((1, 2), 0.5)), "0.5"),
        (lambda: Glove(0, 2), "'n_left'"),
        (lambda: Glove(1, 2.0), "'n_right'"),
    ],
)
def test_bad_input_is_told_in_a_sentence(make: Callable, words: str) -> None:
    with pytest.raises(GralisError, match=words):
        make()
