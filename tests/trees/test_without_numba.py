"""Without numba NumPy and plain Python compute the same numbers."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np

from slow_trees import answers

_SCRIPT = """
import sys
sys.modules["numba"] = None
sys.path.insert(0, {tests!r})
import json
from slow_trees import answers
print(json.dumps(answers()))
"""


def test_the_numbers_do_not_depend_on_numba():
    script = _SCRIPT.format(tests=str(Path(__file__).parents[1]))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    for ours, theirs in zip(answers(), json.loads(done.stdout), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-13)
