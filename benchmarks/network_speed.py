"""What a faster form of the same network gains: seconds of a gradient and a forward, and how far its rows move.

python benchmarks/network_speed.py [--networks NAME ...] [--forms NAME ...] [--out FILE]

Forms: as it is; with its batch norms folded into the convolutions before them, on a copy; in bfloat16; and compiled
(torch.compile). The processor seconds are the least of three batches on one thread. The default plan takes a forward
for every gradient, so the RMSE at equal time is the root of the ratio of both together. The rows are those of eight
nodes on the ray of all features, and their difference is relative to their root mean square.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from report import options, table, write
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_weights
from zoo import GREY, densenet, efficientnet, frozen, photograph, superpixels

NETWORKS: dict[str, tuple[Callable[[], nn.Module], int]] = {
    "EfficientNet-Lite0": (efficientnet, 224),
    "DenseNet-121": (lambda: densenet()[0], 128),
}
FORMS: dict[str, Callable[[nn.Module], Any]] = {
    "as it is": lambda net: net,
    "folded": lambda net: folded(net),
    "bfloat16": lambda net: copy.deepcopy(net).to(torch.bfloat16),
    "compiled": torch.compile,
}
ROWS = 8


def folded(net: nn.Module) -> nn.Module:
    """A copy of the network in which every batch norm that reads a convolution is part of it."""
    net = copy.deepcopy(net)
    made: dict[int, tuple[Tensor, nn.Conv2d]] = {}
    pairs: list[tuple[nn.Conv2d, nn.BatchNorm2d]] = []

    def after(conv: nn.Module, _: Any, out: Tensor) -> None:
        assert isinstance(conv, nn.Conv2d)
        made[id(out)] = out, conv  # the tensor is kept, so that its id stays its own

    def before(norm: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        if id(inputs[0]) in made:
            assert isinstance(norm, nn.BatchNorm2d)
            pairs.append((made[id(inputs[0])][1], norm))

    hooks = [m.register_forward_hook(after) for m in net.modules() if isinstance(m, nn.Conv2d)]
    hooks += [m.register_forward_pre_hook(before) for m in net.modules() if isinstance(m, nn.BatchNorm2d)]
    with torch.no_grad():
        net(torch.zeros(1, 3, 224, 224))
    for hook in hooks:
        hook.remove()
    names = {module: name for name, module in net.named_modules()}
    for conv, norm in pairs:
        given = norm.running_mean, norm.running_var, norm.eps, norm.weight, norm.bias
        conv.weight, conv.bias = fuse_conv_bn_weights(conv.weight, conv.bias, *given)
        owner, _, attribute = names[norm].rpartition(".")
        setattr(net.get_submodule(owner), attribute, nn.Identity())
    print(f"{len(pairs)} of {sum(isinstance(m, nn.BatchNorm2d) for m in names)} batch norms folded")
    return frozen(net)


def measure(name: str, forms: list[str]) -> list[dict[str, Any]]:
    make, pixels = NETWORKS[name]
    net = make().to(memory_format=torch.channels_last)
    x = photograph("chelsea", pixels)
    k = int(net(x[None])[0].argmax())
    labels = torch.from_numpy(np.array(superpixels(x).labels[0])).reshape(x.shape).flatten()
    nodes = torch.rand(ROWS, 1, 1, 1, generator=torch.Generator().manual_seed(0))
    truth = _rows(net, x, labels, nodes, k)
    lines: list[dict[str, Any]] = []
    for form in forms:
        start = time.perf_counter()
        try:
            made = FORMS[form](net)
            rows = _rows(made, x, labels, nodes, k)
        except Exception as error:  # a network that cannot be traced says so in its line
            print(f"{name}, {form}: {type(error).__name__}: {error}"[:300], flush=True)
            continue
        first = time.perf_counter() - start
        gradient = _least(lambda made=made: _rows(made, x, labels, nodes, k)) / ROWS
        forward = _least(lambda made=made: _forward(made, x, nodes)) / ROWS
        line = {"network": name, "form": form, "first batch s": first, "gradient ms": 1e3 * gradient}
        line["forward ms"] = 1e3 * forward
        base = lines[0]["gradient ms"] + lines[0]["forward ms"] if lines else 1e3 * (gradient + forward)
        line["RMSE at equal time"] = float(np.sqrt(1e3 * (gradient + forward) / base))
        line["difference of rows"] = float((rows - truth).square().mean().sqrt() / truth.square().mean().sqrt())
        lines.append(line)
        print(table("one thread, processor time", lines), flush=True)
    return lines


def _points(net: Any, x: Tensor, nodes: Tensor) -> Tensor:
    z = GREY + nodes * (x - GREY)
    return z.to(next(net.parameters()).dtype).contiguous(memory_format=torch.channels_last)


def _forward(net: Any, x: Tensor, nodes: Tensor) -> Tensor:
    with torch.no_grad():
        return net(_points(net, x, nodes))


def _rows(net: Any, x: Tensor, labels: Tensor, nodes: Tensor, k: int) -> Tensor:
    z = _points(net, x, nodes).requires_grad_()
    (gradient,) = torch.autograd.grad(net(z)[:, k].sum(), z)
    products = (gradient.double() * (x - GREY)).flatten(1)
    return torch.zeros(len(z), int(labels.max()) + 1, dtype=torch.float64).index_add_(1, labels, products)


def _least(work: Callable[[], Any]) -> float:
    seconds = []
    for _ in range(3):
        start = time.process_time()
        work()
        seconds.append(time.process_time() - start)
    return min(seconds)


def main() -> None:
    parser = options(__doc__.splitlines()[0])
    parser.add_argument("--networks", nargs="+", choices=list(NETWORKS), default=list(NETWORKS))
    parser.add_argument("--forms", nargs="+", choices=list(FORMS), default=list(FORMS))
    given = parser.parse_args()
    torch.set_num_threads(1)
    lines = []
    for name in given.networks:
        lines += measure(name, ["as it is", *(form for form in given.forms if form != "as it is")])
        write(given.out, "network_speed", {"lines": lines})


if __name__ == "__main__":
    main()
