"""estimate.js against Python, under node: phi, stderr and half-widths of every plan at five sigmas."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import warnings

import numpy as np
import pytest
from scipy.stats import t as student

import gralis
from gralis import Gaussian, Uniform
from gralis.files.archive import plain
from gralis.report.page import arithmetic
from gralis.report.rows import rows
from report_cases import network, row, shared

NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(NODE is None, reason="needs node")
SIGMAS = (0.2, 0.4, 0.75, 2.0, math.inf)

HARNESS = """
const input = JSON.parse(require("fs").readFileSync(0, "utf8"));
const testAnswer = INNER;
console.log(JSON.stringify(testAnswer, (key, value) => ArrayBuffer.isView(value) ? Array.from(value) : value));
"""


def run(expression: str, given: object) -> object:
    """The value of a JavaScript expression beside the arithmetic; `input` is what is given."""
    assert NODE is not None
    script = arithmetic() + HARNESS.replace("INNER", expression)
    done = subprocess.run([NODE, "-e", script], input=json.dumps(given), capture_output=True, text=True, timeout=240)
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
    packed = plain(rows(explanation))
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
    assert run("solvePositive(new Float64Array([1, 0, 2, 1]), new Float64Array(2), 2)", None) is False
