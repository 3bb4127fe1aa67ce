"""Stage 4: how far do explanations change when the stain or the compression of a picture changes?

python experiments/histology/shifts.py --data FOLDER --out OUT [--small]   (after train.py)

Every shift is made on the file as it lies in the folder, before it is scaled for the network: the amounts of a stain
are multiplied (optical densities separated by Ruifrok and Johnston's matrix), or the picture is saved as a JPEG once
more. What is compared are Shapley values from forwards alone, whose intervals are narrow on this network. The shifted
picture is explained on the coalitions that explained the first one, with the same regions, baseline and class, so that
noise cancels in the difference. It writes shapley/NUMBER.gralis and studies/shifts-NUMBER.json.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from explain import loaded, of_values, shapley
from numpy.typing import NDArray
from parts import Case, cases
from PIL import Image
from scipy.stats import spearmanr
from setting import Setting, claimed
from skimage.color import hed_from_rgb, rgb_from_hed
from studies import once
from torch import Tensor, nn

import gralis
from gralis.api.explain import prepare
from gralis.bench import Item
from gralis.results.difference import difference

HAEMATOXYLIN, EOSIN = 0, 1
LEVEL = 0.95


def stain(channel: int, factor: float) -> Callable[[Image.Image, Path], Path]:
    """Multiply the amount of one stain."""

    def shifted(image: Image.Image, folder: Path) -> Path:
        light = np.maximum(np.asarray(image, dtype=np.float64), 1) / 255
        amounts = -np.log(light) @ hed_from_rgb
        amounts[..., channel] *= factor
        back = np.exp(-amounts @ rgb_from_hed).clip(0, 1)
        Image.fromarray(np.round(255 * back).astype(np.uint8)).save(folder / "shifted.png")
        return folder / "shifted.png"

    return shifted


def jpeg(quality: int) -> Callable[[Image.Image, Path], Path]:
    """Save as a JPEG of this quality."""

    def shifted(image: Image.Image, folder: Path) -> Path:
        image.save(folder / "shifted.jpg", quality=quality)
        return folder / "shifted.jpg"

    return shifted


SHIFTS = {
    "haematoxylin x 0.8": stain(HAEMATOXYLIN, 0.8),
    "eosin x 1.2": stain(EOSIN, 1.2),
    "JPEG 90": jpeg(90),
    "JPEG 70": jpeg(70),
    "JPEG 50": jpeg(50),
}
OTHERS = "none, but other coalitions"


class Shifted(nn.Module):
    """The network on the shifted picture, as a function of points between the baseline 0 and the first picture.

    A point keeps some pixels of the picture and scales others towards 0. The same pixels of the shifted picture are
    kept and scaled alike. Where the first picture is 0, which no 8-bit picture is for EfficientNet's normalisation, a
    point does not tell what is kept, and the pixel stays 0.
    """

    def __init__(self, network: nn.Module, x: Tensor, other: Tensor) -> None:
        super().__init__()
        self.network = network
        self.register_buffer("ratio", torch.where(x == 0, 0.0, other / torch.where(x == 0, 1.0, x)))

    def forward(self, x: Tensor) -> Tensor:
        return self.network(x * self.ratio)  # type: ignore[no-any-return]


def shifts(setting: Setting) -> None:
    for number, case in enumerate(cases(setting)[: setting.n_shifted]):
        path = setting.path("studies", f"shifts-{number}.json")
        once(path, lambda n=number, c=case: shifted(setting, n, c))  # type: ignore[misc]


def shifted(setting: Setting, number: int, case: Case) -> dict[str, Any]:
    """The change of the Shapley values of an image by every shift, and by nothing but other coalitions."""
    start = time.perf_counter()
    network, item = loaded(case)
    options = of_values(setting, network, item)
    first = shapley(setting, number, case)
    lines = [unpaired(OTHERS, first, gralis.explain(network, item.x, seed=setting.seed + 1, **options))]
    for name, x in shifted_inputs(case).items():
        lines.append(line(name, first, again(network, item, x, first, options)))
    about = {"image": item.name, "patient": case.row["patient"], "sure": share(sure(first)), "error": error(first)}
    return {**about, "lines": lines, "seconds": round(time.perf_counter() - start, 1)}


def sure(e: gralis.Explanation) -> NDArray[np.bool_]:
    """The regions whose interval, which holds for all regions together, excludes zero."""
    low, high = e.interval(LEVEL).T
    return np.asarray((low > 0) | (high < 0))


def error(e: gralis.Explanation) -> float:
    """The stated error of a typical value, relative to a typical value."""
    return float(np.sqrt(np.mean(e.stderr**2) / np.mean(e.values**2)))


def shifted_inputs(case: Case) -> dict[str, Tensor]:
    """The picture after every shift, as the network sees it."""
    source, found = case.part.source(), {}
    with tempfile.TemporaryDirectory() as where, Image.open(source.folder / case.row["file"]) as image:
        for name, shift in SHIFTS.items():
            path = shift(image.convert("RGB"), Path(where))
            found[name] = source.preprocessing.tensor(source.preprocessing.picture(path))
    return found


def again(
    network: nn.Module, item: Item, x: Tensor, first: gralis.Explanation, options: dict[str, Any]
) -> gralis.Explanation:
    """The explanation of another picture on the coalitions of the first one."""
    run = prepare(Shifted(network, item.x, x).eval(), item.x, options, "compare")
    (explanation,) = run.again([first])
    return explanation


def line(name: str, a: gralis.Explanation, b: gralis.Explanation) -> dict[str, Any]:
    """The change on the same coalitions, with the paired intervals of the change."""
    return {**both(name, a, b), "changed": share(sure(difference(a, b)))}


def unpaired(name: str, a: gralis.Explanation, b: gralis.Explanation) -> dict[str, Any]:
    """The same for coalitions that were drawn separately: the half-widths of both add in squares."""
    half = np.hypot(a.half_widths(LEVEL), b.half_widths(LEVEL))
    return {**both(name, a, b), "changed": share(np.abs(b.values - a.values) > half)}


def both(name: str, a: gralis.Explanation, b: gralis.Explanation) -> dict[str, Any]:
    """How far the values move, in their own size and in half-widths of the first explanation's 95% intervals."""
    moved, half = np.abs(b.values - a.values), a.half_widths(LEVEL)
    return {
        "shift": name,
        "log_odds": [a.f_x, b.f_x],
        "relative": float(np.linalg.norm(moved) / np.linalg.norm(a.values)),
        "half_widths": float(np.median(moved / half)) if half.all() else None,
        "outside": share(moved > half),
        "ranks": float(spearmanr(a.values, b.values).statistic),
        "same_first": bool(np.argmax(a.values) == np.argmax(b.values)),
        "flipped": bool(np.sign(b.f_x) != np.sign(a.f_x)),
    }


def share(which: NDArray[np.bool_]) -> float:
    return float(np.mean(which))


if __name__ == "__main__":
    shifts(claimed(__doc__))
