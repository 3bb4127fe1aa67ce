"""How often a claim holds: runs over seeds, one row of a table per claim, written to a file as they are done."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from coverage_truth import Truth
from numpy.typing import NDArray
from report import options, table, write
from threadpoolctl import threadpool_limits

import gralis

Array = NDArray[np.float64]

LEVEL = 0.95
KINK = 1e-8  # of the largest value: the truth of a model with kinks is known as well as that


@dataclass(frozen=True)
class Outcome:
    """Whether a claim held in one run, whether there was a doubt, and width and error relative to the largest value."""

    held: bool
    doubt: bool = False
    width: float = 0.0
    error: float = 0.0
    gradients: float = 0.0

    @staticmethod
    def of(
        values: Array, half_widths: Array, truth: Array, result: Any, gradients: float = 0.0, size: float = 0.0
    ) -> Outcome:
        """Whether all intervals cover, up to the rounding of the truth, which was computed from numbers of this size.

        An unknown width covers nothing; it must come with a doubt.
        """
        off, scale = np.abs(values - truth), max(float(np.abs(truth).max()), 1e-300)
        slack = KINK * scale if half_widths.max() > 1e-4 * scale else 4e-15 * max(scale, size)
        return Outcome(
            bool((off <= half_widths + slack).all()),
            bool(getattr(result, "doubts", ())) or bool(np.isnan(half_widths).any()),
            float(np.nan_to_num(half_widths.max(), nan=np.inf) / scale),
            float(off.max() / scale),
            gradients,
        )


#: A claim runs with a seed and returns one outcome, or one for each of its parts.
Claim = Callable[[int], Outcome | Mapping[str, Outcome]]


def explained(truth: Truth, seed: int, **options: Any) -> gralis.Explanation:
    """The explanation of this model against zero."""
    settings = {"baseline": 0.0, "batch_size": 4096, "progress": False, **options}
    return gralis.explain(truth.function, truth.x, seed=seed, **settings)  # type: ignore[no-any-return]


def phi_outcome(truth: Truth, seed: int, **options: Any) -> Outcome:
    """Whether the intervals of phi cover."""
    e = explained(truth, seed, **options)
    half = np.diff(e.interval(LEVEL), axis=1)[:, 0] / 2
    return Outcome.of(e.values, half, truth.phi(), e, e.cost.n_gradients)


def row(name: str, outcomes: list[Outcome]) -> dict[str, Any]:
    """The shares of a claim: "fine" is held or doubted, "trusted" is the share that held where there was no doubt."""
    held, doubt = (np.array([getattr(o, key) for o in outcomes]) for key in ("held", "doubt"))
    width = float(np.median([o.width for o in outcomes]))
    return {
        "claim": name,
        "runs": len(outcomes),
        "held": float(held.mean()),
        "fine": float((held | doubt).mean()),
        "trusted": float(held[~doubt].mean()) if (~doubt).any() else None,
        "doubts": float(doubt.mean()),
        "width": width if np.isfinite(width) else None,  # most intervals were withdrawn
        "error": float(np.median([o.error for o in outcomes])),
        "worst error": float(max(o.error for o in outcomes)),
        "gradients": float(np.mean([o.gradients for o in outcomes])),
    }


def rows_of(name: str, claim: Claim, n_runs: int) -> list[dict[str, Any]]:
    """One row for the claim, or one for each of its parts."""
    found = [claim(seed) for seed in range(n_runs)]
    if isinstance(found[0], Outcome):
        return [row(name, found)]  # type: ignore[arg-type]
    return [row(f"{name}: {part}", [outcome[part] for outcome in found]) for part in found[0]]  # type: ignore[index]


def run(claims: Mapping[str, Claim], n_runs: int, path: Path | None = None, name: str = "") -> list[dict[str, Any]]:
    """A row for every claim. Rows of at least as many runs that are in the file already are kept."""
    rows: dict[str, dict[str, Any]] = {}
    if path is not None and path.exists():
        rows = {row["claim"]: row for row in json.loads(path.read_text())["rows"]}
    for claim_name, claim in claims.items():
        known = [row for key, row in rows.items() if key == claim_name or key.startswith(f"{claim_name}: ")]
        if known and all(row["runs"] >= n_runs for row in known):
            continue
        with threadpool_limits(1):
            for found in rows_of(claim_name, claim, n_runs):
                rows[found["claim"]] = found
                print(*(f"{key}={_short(value)}" for key, value in found.items()), file=sys.stderr, flush=True)
        write(path, name, {"level": LEVEL, "rows": list(rows.values())})
    return list(rows.values())


def beside(rows: Iterable[dict[str, Any]], others: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows with the width and the error divided by those of another version of the library."""
    before = {row["claim"]: row for row in others}
    compared = []
    for one in rows:
        other = before.get(one["claim"], {})
        ratios = {
            f"{key} / before": one[key] / other[key] if one[key] and other.get(key) else None
            for key in ("width", "error")
        }
        compared.append({**one, "held before": other.get("held"), **ratios})
    return compared


def command(description: str, name: str, claims: Mapping[str, Claim], n_runs: int) -> None:
    """The command line of one benchmark of claims."""
    parser = options(description)
    parser.add_argument("--runs", type=int, default=n_runs, help="seeds per claim")
    parser.add_argument("--only", nargs="+", default=[""], help="run the claims whose names contain one of these texts")
    parser.add_argument("--against", type=Path, help="the JSON file that another version of the library wrote")
    chosen = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    wanted = {key: claim for key, claim in claims.items() if any(text in key for text in chosen.only)}
    rows = run(wanted, 2 if chosen.quick else chosen.runs, chosen.out, name)
    if chosen.out is not None:
        chosen.out.with_suffix(".md").write_text(markdown(rows) + "\n", encoding="utf-8")
    if chosen.against is not None:
        rows = beside(rows, json.loads(chosen.against.read_text())["rows"])
    print(table(description, [{key: _short(value) for key, value in one.items()} for one in rows]))


def markdown(rows: Iterable[dict[str, Any]]) -> str:
    """The rows as a table that `docs/coverage.md` includes; a dash stands for a claim without a width."""
    lines = [
        "| claim | runs | held | held or doubted | doubts | width | largest error |",
        "|---|---|---|---|---|---|---|",
    ]
    for one in rows:
        shares = [f"{one[key]:.0%}" for key in ("held", "fine", "doubts")]
        sizes = [f"{one[key]:.2g}" if one[key] else "-" for key in ("width", "worst error")]
        lines.append("| " + " | ".join([one["claim"], str(one["runs"]), *shares, *sizes]) + " |")
    return "\n".join(lines)


def _short(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:.3g}" if isinstance(value, float) else str(value)
