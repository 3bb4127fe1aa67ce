"""The page's arithmetic against Python, under node: phi, stderr and half-widths of every plan at five sigmas."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import subprocess
import warnings

import numpy as np
import pytest
from scipy.stats import t as student

import gralis
from gralis import Gaussian, Uniform
from gralis.report import content
from gralis.report.constants import CONSTANTS
from gralis.report.html_page import arithmetic
from gralis.report.slider_rows import slider_rows
from gralis.storage.json_values import plain
from report_cases import network, row, shared

NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(NODE is None and "CI" not in os.environ, reason="needs node; in CI its absence fails")
SIGMAS = (0.2, 0.4, 0.75, 2.0, math.inf)

HARNESS = """
const input = JSON.parse(require("fs").readFileSync(0, "utf8"));
useConstants(input.constants);
const testAnswer = INNER;
console.log(JSON.stringify(testAnswer, (key, value) => ArrayBuffer.isView(value) ? Array.from(value) : value));
"""


def node(expression: str, values: dict[str, object]) -> subprocess.CompletedProcess[str]:
    """A JavaScript expression evaluated beside the arithmetic; `input` holds the values and Python's constants."""
    assert NODE is not None, "node is not installed, and in CI it must be"
    script = arithmetic() + HARNESS.replace("INNER", expression)
    given = json.dumps({"constants": CONSTANTS, **values})
    return subprocess.run([NODE, "-e", script], input=given, capture_output=True, text=True, timeout=240)


def run(expression: str, values: dict[str, object]) -> object:
    """The value of a JavaScript expression."""
    done = node(expression, values)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


EXPLANATIONS = {
    "exhaustive": lambda: gralis.explain(network(6), row(6)),
    "shared": shared,
    "shared, without values": lambda: shared(coalition_values=False),
    "shared, several baselines": lambda: shared(
        baseline=gralis.baselines.sample(np.stack([row(10, seed).numpy() for seed in range(5, 9)]), 3), budget=500
    ),
    "shared, fixed nodes": lambda: shared(quadrature="midpoint", n_nodes=3, budget=400),
    "shared, an idle feature": lambda: gralis.explain(
        lambda z: network(9)(z[:, :9]), row(10), budget=300, baseline=np.append(np.zeros(9), row(10)[9])
    ),
    "independent": lambda: shared(plan="independent"),
    "permutation, euclidean": lambda: shared(plan="permutation", budget=600, kernel=Gaussian(2.0, "euclidean")),
    "endpoint": lambda: shared(plan="endpoint"),
    "endpoint, exact": lambda: gralis.explain(network(6), row(6), plan="endpoint"),
}


@pytest.mark.parametrize("name", EXPLANATIONS)
def test_phi_and_its_error_equal_with_kernel(name: str) -> None:
    explanation = EXPLANATIONS[name]()
    packed = plain(slider_rows(explanation))
    scale = packed["largest"] / 5.0
    sigmas = [scale * sigma for sigma in SIGMAS]
    given = {"rows": packed, "sigmas": [None if s == math.inf else s for s in sigmas]}
    found = run(
        "(() => { const ledger = unpackLedger(input.rows); return input.sigmas.map((s) => {"
        "const e = estimateAt(ledger, s === null ? Infinity : s); return { ...e, half: halfWidths(e, 0.95) }; }); })()",
        given,
    )
    for sigma, there in zip(sigmas, found, strict=True):
        kernel = Uniform() if sigma == math.inf else Gaussian(sigma, packed["distance"])
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            here = explanation.with_kernel(kernel)
        largest = np.abs(here.values).max()
        assert np.abs(here.values - there["values"]).max() < 1e-9 * largest
        np.testing.assert_allclose(np.array(there["stderr"], dtype=float), here.stderr, atol=1e-9 * largest)
        half = np.diff(here.interval(0.95), axis=1)[:, 0] / 2
        # The quantile of max |t| is found by simulation on both sides, with other random numbers.
        np.testing.assert_allclose(np.array(there["half"], dtype=float), half, rtol=0.12, atol=1e-12)
        assert (there["worst"] >= 0) == any("cover" in str(each.message) for each in caught)


def test_students_quantiles_are_scipys() -> None:
    tails, dofs = (0.4, 0.05, 1e-3, 1e-7), (1.0, 2.5, 11.0, 200.0)
    found = run("input.tails.map((t) => input.dofs.map((d) => studentQuantile(t, d)))", {"tails": tails, "dofs": dofs})
    np.testing.assert_allclose(found, student.isf(np.array(tails)[:, None], np.array(dofs)), rtol=1e-8)


def test_the_factorisation_solves_systems_of_any_size() -> None:
    rng = np.random.default_rng(0)
    for size in (1, 2, 3, 47, 48, 49, 53, 101):
        root = rng.standard_normal((size, size + 3))
        matrix, right = root @ root.T, rng.standard_normal(size)
        found = run(
            "(() => { const b = Float64Array.from(input.b);"
            "if (!solvePositive(Float64Array.from(input.a), b, b.length)) throw new Error('refused'); return b; })()",
            {"a": np.tril(matrix).ravel().tolist(), "b": right.tolist()},
        )
        np.testing.assert_allclose(found, np.linalg.solve(matrix, right), rtol=1e-6)
    assert run("solvePositive(new Float64Array([1, 0, 2, 1]), new Float64Array(2), 2)", {}) is False


# --- no number is copied ---------------------------------------------------------------------------------------------

ESTIMATE = """(() => { const ledger = unpackLedger(input.rows), e = estimateAt(ledger, 0.4);
return { ...e, half: halfWidths(e, 0.95) }; })()"""


def numbers_in(script: str) -> set[float]:
    """The numeric literals of a script, comments and texts left out."""
    code = re.sub(r"//[^\n]*|`[^`]*`|\"[^\"]*\"", "", script)
    return {float(text) for text in re.findall(r"(?<![\w.])(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?(?!\w)", code)}


def test_the_script_holds_none_of_pythons_constants() -> None:
    """Except small whole numbers, which occur in every formula."""
    flat = np.hstack([np.ravel(value) for value in CONSTANTS.values() if not isinstance(value, tuple)])
    constants = {float(value) for value in flat if not (value == round(value) and abs(value) < 10)}
    assert len(constants) >= 14
    assert not constants & numbers_in(arithmetic())
    assert numbers_in("x = 1e-5 + 24; // 60") == {1e-5, 24.0}


def test_the_page_asks_for_every_constant_and_for_no_other() -> None:
    assert set(re.findall(r'constant\("(\w+)"\)', arithmetic())) == set(CONSTANTS)
    assert content(gralis.explain(network(3), row(3)))["constants"] == plain(CONSTANTS)


def test_without_a_constant_nothing_is_computed() -> None:
    rows = plain(slider_rows(shared(budget=600)))
    assert "the report lacks the constant" in node(ESTIMATE, {"rows": rows, "constants": None}).stderr
    for name in CONSTANTS:
        rest = {key: value for key, value in CONSTANTS.items() if key != name}
        assert f"the report lacks the constant {name}" in node(ESTIMATE, {"rows": rows, "constants": rest}).stderr


def test_a_changed_constant_changes_the_page() -> None:
    rows = plain(slider_rows(shared()))
    before = run(ESTIMATE, {"rows": rows})
    after = run(ESTIMATE, {"rows": rows, "constants": {**CONSTANTS, "ladder": [], "least_visits": 10**9}})
    assert before["method"] == shared().with_kernel(Gaussian(0.4)).method
    assert after["method"] == "adjusted rays (constant)" != before["method"]


def test_an_unknown_formula_is_refused() -> None:
    rows = {**plain(slider_rows(shared(plan="independent"))), "formula": "tomorrow"}
    assert "the page knows no formula tomorrow" in node(ESTIMATE, {"rows": rows}).stderr
