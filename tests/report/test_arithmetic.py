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
import torch
from scipy.stats import t as student

import gralis
from gralis import Gaussian, Uniform
from gralis.estimators import Estimate
from gralis.estimators.steadiest import Steadiest
from gralis.report import content
from gralis.report.constants import CONSTANTS
from gralis.report.html_page import arithmetic
from gralis.report.slider_rows import slider_rows
from gralis.storage.json_values import plain
from report_cases import bent, network, row, shared

NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(NODE is None and "CI" not in os.environ, reason="needs node; in CI its absence fails")
SIGMAS = (0.2, 0.4, 0.75, 2.0, math.inf)

HARNESS = """
const input = JSON.parse(require("fs").readFileSync(0, "utf8"));
useConstants(input.constants);
const shown = (key, value) => ArrayBuffer.isView(value) ? Array.from(value) : value;
(async () => console.log(JSON.stringify(await (INNER), shown)))();
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


def jumping(z: torch.Tensor) -> torch.Tensor:
    """A function with jumps that no gradient sees."""
    return bent(z) + torch.floor(3 * z[:, :3].sum(1))


def positive(n_features: int) -> torch.Tensor:
    return row(n_features).abs() + 0.3


EXPLANATIONS = {
    "exhaustive": lambda: gralis.explain(network(6), row(6)),
    "shared": shared,
    "shared, without values": lambda: shared(coalition_values=False),
    "shared, several baselines": lambda: shared(
        baseline=gralis.baselines.sample(np.stack([row(10, seed).numpy() for seed in range(5, 9)]), 3), budget=500
    ),
    "shared, fixed nodes": lambda: shared(quadrature="midpoint", n_nodes=3, budget=400),
    "shared, nodes that miss a jump": lambda: gralis.explain(jumping, positive(10), budget=400),
    "shared, few replicates": lambda: shared(budget=200, replicates=2),
    "exhaustive, fixed nodes": lambda: gralis.explain(bent, positive(5), quadrature="midpoint", n_nodes=5),
    "exhaustive, one fixed node": lambda: gralis.explain(
        network(3), row(3), quadrature="midpoint", n_nodes=1, coalition_values=False
    ),
    "exhaustive, copies": lambda: gralis.explain(bent, positive(4), plan="exhaustive"),
    "exhaustive, copies of many rays": lambda: gralis.explain(bent, positive(7), plan="exhaustive", budget=6000),
    "exhaustive, copies that miss a jump": lambda: gralis.explain(jumping, positive(5), plan="exhaustive"),
    "permutation, fixed nodes": lambda: shared(plan="permutation", budget=400, quadrature="midpoint", n_nodes=4),
    "shared, an idle feature": lambda: gralis.explain(
        lambda z: network(9)(z[:, :9]), row(10), budget=300, baseline=np.append(np.zeros(9), row(10)[9])
    ),
    "shared, a model that depends on its batch": lambda: gralis.explain(
        lambda z: network(10)(z) + 0.1 * torch.arange(len(z)), row(10), budget=300
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
        "const e = estimateAt(ledger, s === null ? Infinity : s);"
        "return { ...e, half: halfWidths(e, 1 - 0.05 / ledger.price) }; }); })()",
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
        # The quantile of max |t| is found by simulation on both sides, with other random numbers.
        np.testing.assert_allclose(np.array(there["half"], dtype=float), here.half_widths(), rtol=0.12, atol=1e-12)
        assert there["exact"] == here.exact
        margin = np.zeros(here.n_features) if here.estimate.margin is None else here.estimate.margin
        shared_error = np.array(there["allowance"], dtype=float)
        np.testing.assert_allclose(shared_error, margin + here.estimate.rounding, rtol=1e-7, atol=1e-12 * largest)
        assert (there["worst"] >= 0) == any("cover" in str(each.message) for each in caught)


ANSWERED = """(async () => { const answers = [];
receive({ ledger: input.rows, constants: input.constants }, null);
receive({ id: 1, sigma: 0.4, level: 0.95 }, (answered) => answers.push(answered));
while (!answers.some((each) => each.final)) await new Promise((done) => setTimeout(done, 5));
const e = estimateAt(unpackLedger(input.rows), 0.4);
return { ...answers.at(-1), wide: halfWidths(e, 0.95), wider: halfWidths(e, 1 - 0.05 / input.price) }; })()"""


def test_a_run_that_looked_at_its_errors_pays_for_it_on_the_page_too() -> None:
    explanation = shared(budget=2000, tolerance=0.02)
    assert explanation.price > 2
    found = run(ANSWERED, {"rows": plain(slider_rows(explanation)), "price": explanation.price})
    np.testing.assert_array_equal(found["half"], found["wider"])
    assert (np.array(found["wider"]) > np.array(found["wide"])).all()


def test_rounding_alone_is_not_shown() -> None:
    explanation = gralis.explain(network(4), row(4))
    assert explanation.exact
    assert (explanation.half_widths() > 0).all()
    found = run(ANSWERED, {"rows": plain(slider_rows(explanation)), "price": 1.0})
    assert found["exact"] is True
    assert found["half"] == [0.0] * 4
    assert (np.array(found["wide"]) > 0).all()


def test_folds_choose_for_each_other_as_in_python() -> None:
    """Replicates that agree by chance on one surrogate in one fold: the other folds choose for it."""
    rng = np.random.default_rng(30)
    noises = [size * rng.standard_normal((12, 3)) for size in (0.3, 0.29, 0.27, 0.26)]
    tried = [(noise - noise.mean(0), factor) for noise, factor in zip(noises, (1.0, 1.02, 1.04, 1.1), strict=True)]
    search = Steadiest()
    for number, (departures, factor) in enumerate(tried):
        search.look_at(
            Estimate(np.full(3, float(number)), departures, f"m{number}", carriers=np.full(3, 9.0 - number)), factor
        )
    here = search.estimate
    chosen = {search._choice(fold) for fold in range(5)}
    assert len(chosen) > 1  # otherwise nothing is mixed
    there = run(
        "(() => { const search = new Steadiest(), all = (k) => new Float64Array(3).fill(k);"
        "input.tried.forEach(([rows, factor], k) => search.lookAt({ values: all(k), carriers: all(9 - k), count: 12, "
        "departures: Float64Array.from(rows.flat()), method: `m${k}`, exact: false }, factor));"
        "return { ...search.estimate(), over: search.over }; })()",
        {"tried": [(departures.tolist(), factor) for departures, factor in tried]},
    )
    np.testing.assert_allclose(there["values"], here.values, rtol=1e-12)
    np.testing.assert_allclose(np.reshape(there["departures"], (12, 3)), here.departures, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(there["carriers"], here.carriers)
    assert there["method"] == here.method
    assert there["over"] == search.over


def test_the_page_follows_the_rule_for_z_equal_to_zero() -> None:
    """At a sigma at which weights underflow, features that never come first have the value 0 and an unknown error."""
    explanation = shared(plan="permutation", budget=400, kernel=Gaussian(2.0, "euclidean"))
    for sigma in (0.004, 0.002):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            here = explanation.with_kernel(Gaussian(sigma, "euclidean"))
        assert any("Z = 0" in str(each.message) for each in caught)
        there = run(f"estimateAt(unpackLedger(input.rows), {sigma})", {"rows": plain(slider_rows(explanation))})
        unknown = np.isnan(here.stderr)
        assert 0 < unknown.sum() < 10
        np.testing.assert_allclose(there["values"], here.values, atol=1e-12)
        np.testing.assert_array_equal(np.isnan(np.array(there["stderr"], dtype=float)), unknown)


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
