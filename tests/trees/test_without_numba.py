"""Without numba NumPy and plain Python compute the same numbers."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np

from gralis.kernels import Gaussian
from gralis.trees import exact_many, pairs_of_row, shapley_weight
from trees import slow_trees

_SCRIPT = """
import sys
sys.modules["numba"] = None
sys.path.insert(0, {tests!r})
import json
from trees.test_without_numba import answers
print(json.dumps(answers()))
"""


def answers():
    """phi, Shapley values and pairs of a few rows."""
    rng = np.random.default_rng(5)
    trees = slow_trees.random_ensemble(rng, n_columns=6, n_trees=3, depth=4, categories=2, n_outputs=2)
    rows, background = (slow_trees.random_rows(rng, trees, n, 0.1) for n in (3, 4))
    both = exact_many(trees, rows, background, Gaussian(0.6))
    shares = np.full(4, 0.25)
    pairs = pairs_of_row(trees, trees.encode(rows)[0], trees.encode(background), shapley_weight, shares)
    return [both.phi.tolist(), both.shapley.tolist(), pairs.tolist()]


def test_the_numbers_do_not_depend_on_numba():
    script = _SCRIPT.format(tests=str(Path(__file__).parents[1]))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    for ours, theirs in zip(answers(), json.loads(done.stdout), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-13)
