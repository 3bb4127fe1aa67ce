"""gralis accepts NumPy 1.26, so it uses no name that only NumPy 2 has; nobody runs the tests with 1.26 every day."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import gralis

ROOT = Path(gralis.__file__).parent

#: dir() of NumPy 2.4 without that of 1.26.4, for numpy and numpy.linalg; 1.26 imports some submodules only when asked.
NEW = set(
    re.findall(
        r"\S+",
        """acos acosh asin asinh astype atan atan2 atanh bitwise_count bitwise_invert bitwise_left_shift
        bitwise_right_shift bool concat cumulative_prod cumulative_sum isdtype long matrix_transpose matvec permute_dims
        pow strings trapezoid ulong unique_all unique_counts unique_inverse unique_values unstack vecdot vecmat
        linalg.cross linalg.diagonal linalg.matmul linalg.matrix_norm linalg.matrix_transpose linalg.outer
        linalg.svdvals linalg.tensordot linalg.trace linalg.vecdot linalg.vector_norm""",
    )
)


def names(source: str) -> set[str]:
    """What the source takes from np and np.linalg."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute):
            found.add(ast.unparse(node).removeprefix("np."))
    return found


def test_the_walk_finds_a_name() -> None:
    assert names("import numpy as np\nnp.linalg.vecdot(np.trapezoid(a), b)") & set(NEW) == {
        "trapezoid",
        "linalg.vecdot",
    }


def test_no_name_of_numpy_2_is_used() -> None:
    used = {path.name: names(path.read_text(encoding="utf-8")) & NEW for path in ROOT.rglob("*.py")}
    assert {name: found for name, found in used.items() if found} == {}
