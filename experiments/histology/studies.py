"""Stage 3: study the ledgers (the parts of the residual, B, sigma) and the number of regions, which needs the model.

python experiments/histology/studies.py --data FOLDER --out OUT [--weights STATE_DICT] [--small]   (after explain.py)

It writes studies/*.json, one file per study and image. Existing files are kept.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from explain import explained, loaded
from parts import Case, cases
from scipy.stats import spearmanr
from setting import Setting, claimed, read_json, write_json

import gralis
from gralis.bench import Item, Store
from gralis.certificates import calibrate
from gralis.faithfulness import deletion, insertion
from gralis.problem import Problem


def studies(setting: Setting) -> None:
    chosen = cases(setting)
    for number, case in enumerate(chosen):
        ledger = ledger_of(case)
        if ledger is not None:
            once(setting.path("studies", f"residual-{number}.json"), lambda e=ledger: residual(e))
            if number < setting.n_curves:
                path = setting.path("studies", f"sigma-{number}.json")
                once(path, lambda c=case, e=ledger: sigma(setting, *loaded(c), e))
    for number, case in enumerate(chosen[: setting.n_paper]):
        path = setting.path("paper", f"{number}.gralis")
        once(setting.path("studies", f"paper-{number}.json"), lambda p=path, c=case: paper(p, ledger_of(c)))
        once(setting.path("studies", f"bound-{number}.json"), lambda c=case: bound(setting, *loaded(c)))
        once(setting.path("studies", f"scales-{number}.json"), lambda c=case: scales(setting, *loaded(c)))


def ledger_of(case: Case) -> gralis.Explanation | None:
    """The explanation of an image from the study, or None if the image failed."""
    path = Store.read(case.part.folder).ledger(case.row["file"])
    return gralis.load(path) if path.is_file() else None


def parts_of(e: gralis.Explanation) -> dict[str, Any]:
    """The residual and its parts, relative to |F(x) - F(x')|."""
    scale = abs(e.delta) or float("nan")
    terms = {name: getattr(e.residual, name) for name in ("observed", "path", "numerical", "kernel")}
    return {name: [term.value / scale, term.half_width / scale] for name, term in terms.items()}


def residual(e: gralis.Explanation) -> dict[str, Any]:
    """The parts of the residual, B, and the checksum of Lemma A, from the ledger alone."""
    known = np.isfinite(e.ledger.value) & (e.ledger.nodes_per_ray > 0)
    check = e.ledger.checksum[known]
    return {
        "delta": e.delta,
        "n_features": e.n_features,
        "n_gradients": e.cost.n_gradients,
        "n_forwards": e.cost.n_forwards,
        "seconds": e.cost.seconds,
        "parts": parts_of(e),
        "B": float(e.calibration.slope.max()),
        "error": float(np.sqrt(np.mean(e.stderr**2) / np.mean(e.values**2))),
        "checksum": {"mean": float(check.mean()), "rms": float(np.sqrt(np.mean(check**2)))} if len(check) else None,
    }


def paper(path: Path, ours: gralis.Explanation | None) -> dict[str, Any]:
    """Algorithm 1 and the default plan on the same image."""
    theirs = gralis.load(path)
    record = {"algorithm_1": residual(theirs), "shared": None if ours is None else residual(ours)}
    if ours is not None:
        record["correlation"] = float(np.corrcoef(theirs.values, ours.values)[0, 1])
        record["rank_correlation"] = float(spearmanr(theirs.values, ours.values).statistic)
        record["difference"] = float(np.linalg.norm(theirs.values - ours.values) / np.linalg.norm(theirs.values))
    return record


def sigma(setting: Setting, model: Any, item: Item, e: gralis.Explanation) -> dict[str, Any]:
    """Residual, error, agreement with the limits, deletion and insertion for every sigma, from one ledger."""
    k = Problem.build(model, item.x, target=0).predicted()
    assert isinstance(k, int)
    options = {"target": gralis.targets.probability(k), "features": e.features}
    limits = {"0": e.singles().values, "inf": e.with_kernel(gralis.Uniform()).values}
    lines = []
    for width in ("0", *setting.sigmas, "inf"):
        if width in limits:
            values, error = limits[str(width)], float("nan")
        else:
            with warnings.catch_warnings():  # few rays carry a narrow kernel; the error column shows it
                warnings.simplefilter("ignore")
                one = e.with_kernel(gralis.Gaussian(float(width)))
            values, error = one.values, float(np.sqrt(np.mean(one.stderr**2) / np.mean(one.values**2)))
        lines.append(
            {
                "sigma": str(width),
                "residual": float((e.delta - values.sum()) / abs(e.delta)),
                "error": None if np.isnan(error) else error,
                "with_single": float(spearmanr(values, limits["0"]).statistic),
                "with_uniform": float(spearmanr(values, limits["inf"]).statistic),
                "deletion": deletion(model, item.x, values, **options).value,
                "insertion": insertion(model, item.x, values, **options).value,
            }
        )
    return {"image": item.name, "lines": lines}


def bound(setting: Setting, model: Any, item: Item) -> dict[str, Any]:
    """B from a separate calibration pass on independent rays."""
    assert item.features is not None
    budget = setting.budget(item.features.n_features)
    target = explained(model, item)
    kernel = gralis.Gaussian(setting.sigma)
    calibration = calibrate(
        model, item.x, budget=budget, target=target, features=item.features, kernel=kernel, seed=setting.seed + 1
    )
    return {
        "B": float(calibration.slope.max()),
        "per_feature": calibration.slope.tolist(),
        "n_points": calibration.n_points,
    }


def scales(setting: Setting, model: Any, item: Item) -> dict[str, Any]:
    """Explanations with different numbers of regions. The budget grows by six gradients for each region."""
    k = Problem.build(model, item.x, target=0).predicted()
    assert isinstance(k, int)
    lines = []
    for size in setting.scales:
        start = time.perf_counter()
        target = gralis.targets.probability(k)
        options = {"budget": setting.least_budget(size), "seed": setting.seed}
        (one,) = gralis.granularity(
            model, item.x, [size], compactness=setting.compactness, target=target, **options
        ).scales
        lines.append(
            {
                "asked": size,
                "regions": one.explanation.n_features,
                "gradients": one.explanation.cost.n_gradients,
                "deletion": one.deletion.value,
                "insertion": one.insertion.value,
                "residual": one.residual,
                "error": one.error,
                "seconds": round(time.perf_counter() - start, 1),
            }
        )
    return {"image": item.name, "lines": lines}


def once(path: Path, make: Callable[[], dict[str, Any]]) -> None:
    if not path.is_file():
        write_json(path, make())
        print(path.name, flush=True)


def read(setting: Setting, kind: str) -> list[dict[str, Any]]:
    """The results of a study, image by image."""
    paths = sorted(setting.path("studies").glob(f"{kind}-*.json"), key=lambda p: int(p.stem.rpartition("-")[2]))
    return [read_json(path) for path in paths]


if __name__ == "__main__":
    studies(claimed(__doc__))
