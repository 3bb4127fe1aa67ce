"""The numbers of more than twenty settings, bit for bit: write them before a change of structure, compare them after.

    python benchmarks/same_numbers.py --out before.json       # on the old commit
    python benchmarks/same_numbers.py --against before.json   # on the new one, on the same machine

Every number is compared as its 64 bits. Only the public interface is used, so the script runs on both commits.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

import gralis
from gralis import Gaussian, SizeKernel, Uniform

Numbers = dict[str, Any]
SETTINGS: dict[str, Callable[[], Numbers]] = {}


def setting(function: Callable[[], Numbers]) -> Callable[[], Numbers]:
    """Register a setting by the name of its function."""
    SETTINGS[function.__name__] = function
    return function


def network(n_inputs: int, n_outputs: int, activation: type[torch.nn.Module], seed: int = 0) -> torch.nn.Module:
    """A small random network in float64."""
    generator = torch.Generator().manual_seed(seed)
    model = torch.nn.Sequential(
        torch.nn.Linear(n_inputs, 24),
        activation(),
        torch.nn.Linear(24, 12),
        activation(),
        torch.nn.Linear(12, n_outputs),
    ).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator, dtype=torch.float64) / 3)
    return model.eval()


def convolutional() -> torch.nn.Module:
    generator = torch.Generator().manual_seed(5)
    model = torch.nn.Sequential(
        torch.nn.Conv2d(3, 6, 5, stride=2), torch.nn.ReLU(), torch.nn.Conv2d(6, 8, 3), torch.nn.ReLU(),
        torch.nn.AdaptiveAvgPool2d(4), torch.nn.Flatten(), torch.nn.Linear(128, 5),
    )  # fmt: skip
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) / 3)
    return model.eval()


def point(n: int, seed: int = 1) -> torch.Tensor:
    return torch.randn(n, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def photo() -> torch.Tensor:
    return torch.rand(3, 32, 32, generator=torch.Generator().manual_seed(2))


def everything(e: Any) -> Numbers:
    """The numbers of one explanation, and of the explainers that its ledger gives."""
    numbers: Numbers = {
        "values": e.values, "stderr": e.stderr, "interval": e.interval(0.9), "f_x": e.f_x, "f_baseline": e.f_baseline,
        "n_gradients": e.cost.n_gradients, "n_forwards": e.cost.n_forwards, "n_rays": e.cost.n_rays,
    }  # fmt: skip
    parts: dict[str, Callable[[], Any]] = {
        "residual": lambda: [
            (part.value, part.half_width)
            for part in (e.residual.observed, e.residual.numerical, e.residual.path, e.residual.kernel)
        ],
        "certificate": lambda: e.certificate().half_widths,
        "shapley": lambda: (e.shapley().values, e.shapley().stderr),
        "banzhaf": lambda: e.banzhaf().values,
        "kernel_shap": lambda: e.kernel_shap().values,
        "lime": lambda: e.lime().values,
        "ig": lambda: (e.integrated_gradients().values, e.integrated_gradients().stderr),
        "singles": lambda: e.singles().values,
        "moebius": lambda: list(e.moebius(2).values()),
        "SII": lambda: list(e.interactions(2).values()),
        "FSII": lambda: list(e.interactions(2, "FSII").values()),
        "uniform": lambda: e.with_kernel(Uniform()).values,
        "narrow": lambda: e.with_kernel(Gaussian(0.4)).values,
        "effective_rays": lambda: e.effective_rays,
        "ranks": lambda: [e.ranks().lowest, e.ranks().highest],
        "audit": lambda: e.audit(e.values * 1.1).deficit,
    }
    for name, compute in parts.items():
        try:
            numbers[name] = compute()
        except gralis.GralisError as error:
            numbers[name] = type(error).__name__
    return numbers


@setting
def shared_gaussian_tanh() -> Numbers:
    return everything(gralis.explain(network(10, 3, torch.nn.Tanh), point(10), target=1, budget=300))


@setting
def shared_uniform_relu() -> Numbers:
    return everything(gralis.explain(network(12, 1, torch.nn.ReLU, 3), point(12), kernel=Uniform(), budget=400, seed=7))


@setting
def shared_euclidean_without_values() -> Numbers:
    kernel = Gaussian(1.5, distance="euclidean")
    options: dict[str, Any] = {"kernel": kernel, "coalition_values": False, "budget": 300}
    return everything(gralis.explain(network(10, 2, torch.nn.Tanh), point(10), target=0, **options))


@setting
def shared_size_kernel() -> Numbers:
    kernel = SizeKernel(lambda size: 1 / (1 + size))
    return everything(gralis.explain(network(10, 2, torch.nn.Softplus), point(10), target=0, kernel=kernel, budget=200))


@setting
def shared_masks_kernel() -> Numbers:
    def kernel(masks: np.ndarray) -> np.ndarray:
        return np.exp(-masks.sum(1) / 5)

    return everything(gralis.explain(network(9, 2, torch.nn.Softplus), point(9), target=0, kernel=kernel, budget=200))


@setting
def shared_two_midpoints() -> Numbers:
    options: dict[str, Any] = {"quadrature": "midpoint", "n_nodes": 4, "budget": 400}
    return everything(gralis.explain(network(10, 2, torch.nn.Tanh), point(10), target=0, **options))


@setting
def exhaustive() -> Numbers:
    return everything(gralis.explain(network(6, 1, torch.nn.Tanh), point(6), plan="exhaustive", budget=None))


@setting
def exhaustive_by_itself() -> Numbers:
    return everything(gralis.explain(network(5, 1, torch.nn.ReLU), point(5)))


@setting
def permutation() -> Numbers:
    plan = gralis.plans.permutation(n_permutations=8)
    return everything(gralis.explain(network(8, 1, torch.nn.Tanh), point(8), plan=plan, budget=2000))


@setting
def permutation_paper_certificate() -> Numbers:
    plan = gralis.plans.permutation(n_permutations=6, antithetic=False)
    e = gralis.explain(network(6, 1, torch.nn.Tanh), point(6), plan=plan, kernel=Uniform(), budget=2000)
    return {**everything(e), "paper": e.certificate(method="paper", bound=3.0).half_widths}


@setting
def independent_bernstein() -> Numbers:
    e = gralis.explain(network(8, 1, torch.nn.Tanh), point(8), plan="independent", budget=400)
    return {**everything(e), "bernstein": e.certificate(method="bernstein", bound=2.0).half_widths}


@setting
def endpoint_sampled() -> Numbers:
    return everything(gralis.explain(network(14, 1, torch.nn.Tanh), point(14), plan="endpoint", budget=300))


@setting
def endpoint_enumerated() -> Numbers:
    return everything(gralis.explain(network(7, 1, torch.nn.Tanh), point(7), plan="endpoint", budget=None))


@setting
def values_sampled() -> Numbers:
    return everything(gralis.explain(network(12, 1, torch.nn.ReLU), point(12), plan="values", budget=200))


@setting
def values_enumerated() -> Numbers:
    return everything(gralis.explain(network(6, 1, torch.nn.ReLU), point(6), plan="values", budget=200))


@setting
def random_orders() -> Numbers:
    plan = gralis.plans.values(orders=True)
    return everything(gralis.explain(network(12, 1, torch.nn.ReLU), point(12), plan=plan, budget=400))


@setting
def random_orders_from_several_baselines() -> Numbers:
    rows, plan = torch.stack([point(9, seed) for seed in range(3, 6)]), gralis.plans.values(orders=True)
    model = gralis.models.blackbox(lambda z: np.tanh(z.sum(1)) + z[:, 0] * z[:, 1] * z[:, 2])
    options = {"baseline": gralis.baselines.sample(rows, 3), "plan": plan, "budget": 300}
    return everything(gralis.explain(model, point(9).numpy(), **options).extend(100))


@setting
def several_baselines() -> Numbers:
    rows = torch.stack([point(9, seed) for seed in range(3, 7)])
    baseline = gralis.baselines.sample(rows, 4)
    e = gralis.explain(network(9, 1, torch.nn.Tanh), point(9), baseline=baseline, budget=400)
    spread = e.baseline_spread()
    return {**everything(e), "spread": spread.spread, "share": spread.share}


@setting
def several_targets() -> Numbers:
    found = gralis.explain(network(9, 3, torch.nn.Tanh), point(9), target=[0, 2], budget=600)
    apart = found.contrast(0, 1)
    cost = found.cost
    return {
        "values": found.values, "stderr": found.stderr, "contrast": apart.values, "interval": apart.interval(0.95),
        "cost": [cost.n_gradients, cost.n_forwards, cost.n_rays],
    }  # fmt: skip


@setting
def all_targets() -> Numbers:
    found = gralis.explain(network(8, 3, torch.nn.Softplus), point(8), target="all", budget=900)
    return {"values": found.values, "stderr": found.stderr}


@setting
def batch_of_inputs() -> Numbers:
    xs = torch.stack([point(10, seed) for seed in range(5)])
    found = gralis.explain_batch(network(10, 3, torch.nn.Tanh), xs, target=[0, 1, 2, 1, 0], budget=250)
    cost = found.cost
    return {
        "values": found.values, "stderr": found.stderr, "intervals": [e.interval(0.95) for e in found],
        "cost": [cost.n_gradients, cost.n_forwards, cost.n_rays],
    }  # fmt: skip


@setting
def batch_with_an_outlier() -> Numbers:
    xs = torch.stack([point(10, 1), point(10, 2), torch.eye(10, dtype=torch.float64)[3] * 9 + 0.01])
    found = gralis.explain_batch(network(10, 1, torch.nn.Tanh), xs, kernel=Gaussian(0.2), budget=200)
    return {"values": found.values, "stderr": found.stderr, "n": [e.cost.n_gradients for e in found]}


@setting
def tolerance_reached() -> Numbers:
    e = gralis.explain(network(10, 1, torch.nn.Tanh), point(10), tolerance=0.05, budget=4000)
    return {**everything(e), "reached": e.reached}


@setting
def tolerance_missed() -> Numbers:
    e = gralis.explain(network(12, 1, torch.nn.ReLU), point(12), tolerance=1e-6, budget=500)
    return {**everything(e), "reached": e.reached, "budget_for": e.budget_for(0.01)}


@setting
def extended() -> Numbers:
    e = gralis.explain(network(10, 1, torch.nn.Tanh), point(10), budget=200)
    return everything(e.extend(300))


@setting
def folded() -> Numbers:
    model = torch.nn.Sequential(torch.nn.Flatten(), network(3072, 2, torch.nn.Tanh)).eval()
    options: dict[str, Any] = {
        "kernel": [Gaussian(0.75), Uniform()],
        "batch_size": 64,
    }  # sums depend on batches
    e = gralis.explain(model, photo().double(), target=1, budget=3000, **options)
    longer = e.extend(480)
    return {
        "values": e.values, "stderr": e.stderr, "uniform": e.with_kernel(Uniform()).values,
        "interval": e.interval(0.9), "extended": longer.values, "n": longer.cost.n_gradients,
    }  # fmt: skip


@setting
def loaded_from_file() -> Numbers:
    e = gralis.explain(network(10, 3, torch.nn.Tanh), point(10), target=1, budget=300)
    with tempfile.TemporaryDirectory() as folder:
        again = gralis.load(e.save(Path(folder) / "e.gralis"))
        return everything(again)


@setting
def replayed() -> Numbers:
    model = network(10, 1, torch.nn.Tanh)
    e = gralis.explain(model, point(10), budget=300)
    again = gralis.replay(e, model)
    return {"values": again.explanation.values, "same": again.same, "largest": again.largest}


@setting
def image_regions_blur() -> Numbers:
    regions = gralis.features.grid((3, 32, 32), 8)
    e = gralis.explain(convolutional(), photo(), target=2, features=regions, baseline="blur", budget=400, batch_size=32)
    return {**everything(e), "on_input": e.to_input()}


@setting
def layer_of_a_network() -> Numbers:
    model = convolutional()
    e = gralis.explain(
        model, photo(), target=2, layer="2", features=gralis.features.channels((8, 12, 12)), budget=300, batch_size=16
    )
    return everything(e)


@setting
def discrete_columns() -> Numbers:
    table = gralis.features.columns([f"c{i}" for i in range(9)], discrete=["c1", "c4", "c5"])
    e = gralis.explain(network(9, 1, torch.nn.Tanh), point(9), features=table, budget=300)
    return everything(e)


@setting
def dict_of_inputs() -> Numbers:
    def model(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.tanh(a.sum(1) * b[:, 0]) + (a * b[:, :4]).sum(1) ** 2

    e = gralis.explain(model, {"a": point(4), "b": point(6, 9)}, budget=200)
    return {**everything(e), "on_input": [e.to_input()["a"], e.to_input()["b"]]}


@setting
def two_models() -> Numbers:
    found = gralis.compare(network(9, 1, torch.nn.Tanh), network(9, 1, torch.nn.Tanh, 4), point(9), budget=300)
    return {"change": found.change.values, "stderr": found.change.stderr, "changed": found.changed()}


@setting
def multiscale() -> Numbers:
    levels = [gralis.features.grid((3, 32, 32), 8), gralis.features.grid((3, 32, 32), 16)]
    found = gralis.multiscale(convolutional(), photo(), levels, target=2, budget=300, batch_size=32)
    return {"values": found.values, "stderr": found.stderr, "weights": found.weights, "interval": found.interval(0.9)}


@setting
def black_box() -> Numbers:
    model = gralis.models.blackbox(lambda rows: np.tanh(rows.sum(1)) + rows[:, 0] * rows[:, 1])
    return everything(gralis.explain(model, np.linspace(-1, 1, 11), plan="endpoint", budget=400))


@setting
def sobol_indices() -> Numbers:
    game = gralis.games.Ishigami()
    exact = gralis.sensitivity(game, game.bounds)
    sampled = gralis.sensitivity(game, game.bounds, method="sampling", budget=2000)
    return {"first": exact.first, "total": exact.total, "sampled": sampled.first, "sampled_total": sampled.total}


@setting
def canonical_triples() -> Numbers:
    model, x, c = network(5, 1, torch.nn.Tanh), point(5), gralis.canonical
    return {"shap": c.shap(model, x).attribution(), "gralis": c.gralis(model, x).attribution(),
            "ig": c.integrated_gradients(model, x).attribution(), "lime": c.lime(model, x).attribution()}  # fmt: skip


@setting
def peers() -> Numbers:
    model, x = network(8, 2, torch.nn.Tanh), point(8)
    names = (
        "gralis",
        "gralis_uniform",
        "integrated_gradients",
        "kernel_shap",
        "lime",
        "occlusion",
        "singles",
        "random",
    )
    return {name: getattr(gralis.methods, name)(model, x, target=1, budget=300, batch_size=64).values for name in names}


@setting
def grad_cam() -> Numbers:
    model = convolutional()
    regions = gralis.features.grid((3, 32, 32), 8)
    cams = {name: getattr(gralis.methods, name) for name in ("gradcam", "gradcam_lin")}
    return {name: cam(model, photo(), target=2, features=regions, layer="2").values for name, cam in cams.items()}


@setting
def faithfulness() -> Numbers:
    model, regions = convolutional(), gralis.features.grid((3, 32, 32), 8)
    e = gralis.explain(model, photo(), target=2, features=regions, budget=200, batch_size=32)
    options = {"target": 2, "features": regions}
    names = ("deletion", "insertion", "road_morf", "infidelity", "completeness", "gini")
    return {name: getattr(gralis.faithfulness, name)(model, photo(), e.values, **options).value for name in names}


@setting
def data_set() -> Numbers:
    model = network(6, 2, torch.nn.Tanh)
    xs = torch.stack([point(6, seed) for seed in range(7)])
    with tempfile.TemporaryDirectory() as folder:
        gralis.explain_many(model, xs, target=1, budget=120, out=folder, progress=False)
        importance = gralis.global_importance(folder)
        return {"mean_absolute": importance.mean_abs}


def bits(value: Any) -> Any:
    """Plain values in which every number is written as its 64 bits."""
    if isinstance(value, dict):
        return {str(key): bits(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [bits(part) for part in value]
    if isinstance(value, str | bool | None.__class__):
        return value
    array = np.asarray(value)
    if array.dtype == object:
        return repr(value)
    return {"shape": list(array.shape), "bits": np.ascontiguousarray(array, dtype=np.float64).tobytes().hex()}


def differences(then: Any, now: Any, path: str = "") -> Iterator[str]:
    """Where two results are not the same, to the last bit."""
    if isinstance(then, dict) and isinstance(now, dict) and "bits" not in then:
        for key in sorted(set(then) | set(now)):
            if key not in then or key not in now:
                yield f"{path}/{key} is only in {'the new' if key in now else 'the old'} numbers"
            else:
                yield from differences(then[key], now[key], f"{path}/{key}")
    elif isinstance(then, list) and isinstance(now, list) and len(then) == len(now):
        for number, (a, b) in enumerate(zip(then, now, strict=True)):
            yield from differences(a, b, f"{path}/{number}")
    elif then != now:
        try:
            a, b = (np.frombuffer(bytes.fromhex(one["bits"])) for one in (then, now))
            yield f"{path}: largest difference {np.nanmax(np.abs(a - b)):.3g}"
        except (TypeError, ValueError, KeyError):
            yield f"{path}: {then!r} became {now!r}"[:400]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="write the numbers here")
    parser.add_argument("--against", type=Path, help="compare with these numbers; exit code 1 if one bit differs")
    parser.add_argument("--only", nargs="*", help="these settings only")
    given = parser.parse_args()
    torch.set_num_threads(1)
    numbers = {}
    for name, function in SETTINGS.items():
        if given.only and name not in given.only:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            numbers[name] = bits(function())
        print(f"{name}: {len(json.dumps(numbers[name]))} characters", file=sys.stderr)
    if given.out:
        given.out.write_text(json.dumps(numbers))
    if not given.against:
        return 0
    then = json.loads(given.against.read_text())
    wrong = [line for name in numbers for line in differences(then.get(name), numbers[name], name)]
    print("\n".join(wrong) or f"{len(numbers)} settings: the same, bit for bit")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
