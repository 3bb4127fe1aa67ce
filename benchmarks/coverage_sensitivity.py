"""How often the intervals of sensitivity analysis hold, against closed forms, and how wide they are.

python benchmarks/coverage_sensitivity.py [--quick] [--out benchmarks/results/coverage_sensitivity.json]

sampled     `sensitivity(method="sampling")`: functions that vary everywhere, and bumps that fill little of the inputs
automatic   `sensitivity` with a narrow spike beside a smooth function, which quadrature could miss
one pass    `term_shares` from explanations with baselines that are drawn like the inputs
importance  `global_importance`: the mean |phi| and the mean phi of a larger population of inputs

A run is honest if all intervals of a kind hold, or if the result has a doubt.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from report import options, table, write
from scipy.special import erf

import gralis
from gralis.certificates.simultaneous import half_widths
from gralis.games import Anova, Ishigami, Multilinear, SobolG

Array = NDArray[np.float64]
Truth = dict[str, Array]
Case = tuple[Any, Any, Truth]  # the model, its inputs, the indices

LEVEL = 0.95
BUDGETS = (2**16, 2**18)
KINDS = ("first", "total", "shapley", "pairs", "closed")
TARGETS = {"honest": 0.92, "doubts where nothing is rare": 0.05, "width where nothing is rare": 1.1}


def product_indices(n: int, mean: float, square: float) -> Truth:
    """The indices of a product of n equal factors of independent inputs, with these first two moments."""
    d = square / mean**2 - 1
    total = (1 + d) ** n - 1
    pairs = n * (n - 1) // 2
    return {
        "variance": np.array([mean ** (2 * n) * total]),
        "first": np.full(n, d / total),
        "total": np.full(n, d * (1 + d) ** (n - 1) / total),
        "shapley": np.full(n, 1 / n),
        "pairs": np.full(pairs, d**2 / total),
        "closed": np.full(pairs, (2 * d + d**2) / total),
    }


def bump(n: int, width: float, centre: float = 0.4) -> Case:
    """exp(-|z - centre|^2 / (2 width^2)) on the unit cube."""

    def moment(scale: float) -> float:
        edges = [0.5 * erf((edge - centre) / scale / math.sqrt(2)) for edge in (0, 1)]
        return scale * math.sqrt(2 * math.pi) * float(edges[1] - edges[0])

    def f(z: Array) -> Array:
        return np.asarray(np.exp(-((np.asarray(z) - centre) ** 2).sum(1) / (2 * width**2)))

    truth = product_indices(n, moment(width), moment(width / math.sqrt(2)))
    return gralis.models.blackbox(f), [(0, 1)] * n, truth


def box(n: int, side: float) -> Case:
    """1 in a cube of this side, and 0 elsewhere in the unit cube."""

    def f(z: Array) -> Array:
        return (np.abs(np.asarray(z) - 0.4) < side / 2).all(1).astype(np.float64)

    return gralis.models.blackbox(f), [(0, 1)] * n, product_indices(n, side, side)


def spike(side: float, height: float) -> Case:
    """z_0 + z_1 + height in a square of this side around (0.3, 0.3)."""

    def f(z: Array) -> Array:
        z = np.asarray(z)
        return z.sum(1) + height * (np.abs(z - 0.3) < side / 2).all(1)

    share, slope = side**2, 2 * height * side**2 * (0.3 - 0.5)
    single = 1 / 12 + slope + height**2 * share * (side - share)
    variance = 2 / 12 + 2 * slope + height**2 * share * (1 - share)
    pair = variance - 2 * single
    truth = {
        "variance": np.array([variance]),
        "first": np.full(2, single / variance),
        "total": np.full(2, (single + pair) / variance),
        "shapley": np.full(2, 0.5),
        "pairs": np.array([pair / variance]),
        "closed": np.ones(1),
    }
    return gralis.models.blackbox(f), [(0, 1)] * 2, truth


def closed_form(f: Anova) -> Case:
    """A function of `gralis.games` with its answers."""
    answers = {
        "variance": [f.variance()],
        "first": f.first_order(),
        "total": f.total(),
        "shapley": f.shapley_effects(),
        "pairs": list(f.pairs().values()),
        "closed": list(f.closed().values()),
    }
    bounds = f.bounds  # type: ignore[attr-defined]
    return f, bounds, {kind: np.array([float(value) for value in values]) for kind, values in answers.items()}


def smooth_cases() -> dict[str, Case]:
    """Functions that vary everywhere."""
    return {
        "ishigami": closed_form(Ishigami()),
        "sobol-g": closed_form(SobolG()),
        "polynomial": closed_form(Multilinear.random(6, 6, seed=2)),
        "additive": closed_form(Multilinear({(0,): 1, (1,): 2, (3,): -3}, 4)),
    }


def rare_cases() -> dict[str, Case]:
    """Bumps, from 2 % of the inputs to 0.05 %."""
    return {"bump 3": bump(3, 0.1), "bump 3 narrow": bump(3, 0.05), "bump 5": bump(5, 0.15), "box 4": box(4, 0.2)}


def covers(result: gralis.Sensitivity, truth: Truth, kind: str) -> bool:
    """Whether all intervals of one kind hold."""
    off = np.abs(result.estimates[kind].values - truth[kind])
    return bool((off <= result._half(kind) + 1e-12).all())


def sensitivity_cell(name: str, case: Case, budget: int, n_runs: int, method: str) -> dict[str, Any]:
    """Coverage, doubts and widths of `sensitivity` over seeds."""
    f, inputs, truth = case
    held: dict[str, int] = dict.fromkeys(KINDS, 0)
    alone, doubts, honest, wider = 0, 0, 0, []
    for seed in range(n_runs):
        result = gralis.sensitivity(f, inputs, method=method, budget=budget, seed=seed, level=LEVEL)  # type: ignore[arg-type]
        hits = {kind: covers(result, truth, kind) for kind in KINDS}
        for kind, hit in hits.items():
            held[kind] += hit
        doubts += bool(result.doubts)
        honest += all(hits.values()) or bool(result.doubts)
        first = result.estimates["first"]
        before = half_widths(replace(first, carriers=None), LEVEL)
        alone += bool((np.abs(first.values - truth["first"]) <= before + 1e-12).all())
        if before.max() > 0:
            wider.append(float(np.median(result.first_half_width / np.maximum(before, 1e-300))))
    cell = {"case": name, "budget": budget, "runs": n_runs, **{kind: held[kind] / n_runs for kind in KINDS}}
    return {
        **cell,
        "first, jackknife": alone / n_runs,
        "wider": float(np.median(wider)) if wider else 1.0,
        "doubts": doubts / n_runs,
        "honest": honest / n_runs,
    }


def one_pass_cell(n_runs: int, n_inputs: int = 100, n_baselines: int = 30) -> dict[str, Any]:
    """a^2 + a b + b c on [-1, 1]^3, whose parts are 4/45, 1/9 and 1/9."""

    def f(z: Any) -> Any:
        return z[:, 0] ** 2 + z[:, 0] * z[:, 1] + z[:, 1] * z[:, 2]

    variance = 4 / 45 + 2 / 9
    parts = {(0,): 4 / 45 / variance, (0, 1): 1 / 9 / variance, (1, 2): 1 / 9 / variance}
    held = closed = doubts = 0
    for seed in range(n_runs):
        rng = np.random.default_rng(seed)
        points, baselines = rng.uniform(-1, 1, (n_inputs, 3)), rng.uniform(-1, 1, (n_baselines, 3))
        sample = gralis.baselines.sample(baselines)
        found = gralis.term_shares(
            [gralis.explain(f, x, baseline=sample, plan="exhaustive", budget=None, progress=False) for x in points],
            max_order=3,
            level=LEVEL,
        )
        held += all(abs(found.shares[t] - parts.get(t, 0.0)) <= found.half_width[t] for t in found.sets)
        inside = {t: sum(v for part, v in parts.items() if set(part) <= set(t)) for t in found.sets}
        closed += all(abs(found.closed[t] - inside[t]) <= found.closed_half_width[t] for t in found.sets)
        doubts += bool(found.doubts)
    return {
        "case": f"{n_inputs} inputs, {n_baselines} baselines",
        "runs": n_runs,
        "shares": held / n_runs,
        "closed": closed / n_runs,
        "doubts": doubts / n_runs,
    }


def importance_cell(
    name: str, draw: Callable[[np.random.Generator, int], Array], n_runs: int, n: int
) -> dict[str, Any]:
    """F linear, so that phi_i = a_i (x_i - x'_i): the population of a million inputs is the truth."""
    slopes = np.array([1.0, -2.0, 0.5, 3.0])

    def f(z: Any) -> Any:
        return z @ z.new_tensor(slopes)

    everyone = slopes * draw(np.random.default_rng(10**6), 10**6)
    truth = {"mean_abs": np.abs(everyone).mean(0), "mean": everyone.mean(0)}
    held = dict.fromkeys(truth, 0)
    for seed in range(n_runs):
        points = draw(np.random.default_rng(seed), n)
        with tempfile.TemporaryDirectory() as folder:
            results = gralis.explain_many(f, list(points), baseline=0.0, out=folder, budget=60, progress=False)
            found = gralis.global_importance(results)
        half = found.half_widths(LEVEL)
        for kind in truth:
            held[kind] += bool((np.abs(getattr(found, kind) - truth[kind]) <= half[kind]).all())
    return {"case": name, "inputs": n, "runs": n_runs, **{kind: count / n_runs for kind, count in held.items()}}


def importance_cells(n_runs: int, numbers: tuple[int, ...]) -> Iterator[dict[str, Any]]:
    """Normal and skewed inputs, in these numbers."""
    for n in numbers:
        yield importance_cell("normal", lambda rng, m: rng.standard_normal((m, 4)), n_runs, n)
        yield importance_cell("skewed", lambda rng, m: rng.exponential(1.0, (m, 4)), n_runs, n)


def run(
    n_runs: int, budgets: tuple[int, ...] = BUDGETS, n_inputs: int = 100, numbers: tuple[int, ...] = (30, 200)
) -> dict[str, Any]:
    """All cells; `n_inputs` for one pass, `numbers` of inputs for the importance."""
    cases = {**smooth_cases(), **rare_cases()}
    sampled = [
        sensitivity_cell(name, case, budget, n_runs, "sampling") for name, case in cases.items() for budget in budgets
    ]
    sampled.append(sensitivity_cell("spike", spike(0.035, 14.0), budgets[0], n_runs, "auto"))
    return {
        "level": LEVEL,
        "targets": TARGETS,
        "sampled": sampled,
        "one pass": [one_pass_cell(max(n_runs // 2, 2), n_inputs)],
        "importance": list(importance_cells(n_runs, numbers)),
    }


def markdown(result: dict[str, Any]) -> str:
    """The result as three tables that `docs/coverage.md` includes."""

    def share(cell: dict[str, Any], *kinds: str) -> list[str]:
        return [f"{cell[kind]:.0%}" for kind in kinds]

    sampled = [
        [
            f"{c['case']}, {c['budget']} evaluations",
            c["runs"],
            *share(c, *KINDS, "honest", "doubts"),
            f"{c['wider']:.2g}",
        ]
        for c in result["sampled"]
    ]
    one_pass = [[c["case"], c["runs"], *share(c, "shares", "closed", "doubts")] for c in result["one pass"]]
    importance = [
        [f"{c['case']}, {c['inputs']} inputs", c["runs"], *share(c, "mean_abs", "mean")] for c in result["importance"]
    ]
    tables = {
        ("`sensitivity`", "runs", *KINDS, "all five, or doubted", "doubts", "wider"): sampled,
        ("`term_shares`", "runs", "shares", "closed", "doubts"): one_pass,
        ("`global_importance`", "runs", "mean of absolute values", "mean"): importance,
    }
    lines = [
        "\n".join(f"| {' | '.join(map(str, cells))} |" for cells in [head, ["---"] * len(head), *rows])
        for head, rows in tables.items()
    ]
    return "\n\n".join(lines)


def main() -> None:
    parser = options(__doc__ or "")
    chosen = parser.parse_args()
    result = run(2, (2**13,), 12, (8,)) if chosen.quick else run(100)
    for name in ("sampled", "one pass", "importance"):
        print(table(name, result[name]))
    write(chosen.out, "coverage_sensitivity", result)
    if chosen.out is not None:
        chosen.out.with_suffix(".md").write_text(markdown(result) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
