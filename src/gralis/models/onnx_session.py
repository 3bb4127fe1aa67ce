"""An ONNX model as a gralis Model: onnxruntime computes its values, and onnx2torch, where it can, its gradient."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from gralis.checks import as_path
from gralis.errors import GralisError, ModelError, NoGradientError, bad
from gralis.models.failures import kind, report_failure
from gralis.models.points import leaves
from gralis.models.protocol import OutputModel, Points
from gralis.models.torch_module import TorchModel
from gralis.targets import Target, check, describe, select

__all__ = ["OnnxModel", "onnx_model"]

_TYPES: dict[str, type] = {
    "tensor(float)": np.float32,
    "tensor(double)": np.float64,
    "tensor(float16)": np.float16,
    "tensor(int64)": np.int64,
    "tensor(int32)": np.int32,
    "tensor(bool)": np.bool_,
}
_AGREEMENT = 1e-3  # how far onnxruntime and the converted network may differ, as a share of the value


def onnx_model(model: object, target: Target = None, *, output: str | None = None, gradients: bool = True) -> OnnxModel:
    """F(point) = target(output of the ONNX model), by onnxruntime, with gradients where onnx2torch can convert it.

    Points are converted to the types that the model declares, usually float32. A model that was exported with a fixed
    batch size is called with batches of that size. Without a gradient, `explain` uses plan="endpoint" unless you choose
    another plan, and the table says why.

    Parameters
    ----------
    model : str, Path, or onnxruntime.InferenceSession
        The file, or a session. An x with one array goes to the only input of the model, a tuple to its inputs in
        order, and a dict by name.
    target : int, tuple of int, callable or None, default=None
        What F reads off the output.
    output : str, optional
        The name of the output that is read. By default the only one, "logits", or the only one of real numbers.
    gradients : bool, default=True
        Whether to convert the model with onnx2torch, which needs torchvision. The converted network is used only if it
        agrees with onnxruntime.

    Returns
    -------
    OnnxModel
    """
    session, path = _session(model)
    names = [one.name for one in session.get_outputs()]
    if output is not None and output not in names:
        raise bad("output", "models.onnx", f"one of {', '.join(names)}", repr(output))
    name = path.name if path is not None else kind(model)
    module, why = _converted(path) if gradients else (None, "gradients=False")
    place = _place(session, output)
    wrapped = None if module is None else _Positional(module, [one.name for one in session.get_inputs()], place)
    return OnnxModel(session, check(target, "models.onnx"), place, name, wrapped, why, _digest(path))


@dataclass(frozen=True, eq=False, repr=False)
class OnnxModel(OutputModel):
    """F of an ONNX model; made by `gralis.models.onnx`.

    Attributes
    ----------
    session : onnxruntime.InferenceSession
        Computes the outputs.
    target : Target, default=None
        What F reads off the output.
    output : int, default=0
        The place of the output that is read.
    name : str, default="an ONNX model"
        The name of the file.
    module : torch.nn.Module or None, default=None
        The converted network, which computes gradients.
    why_no_gradient : str or None, default=None
        Why there is no converted network.
    digest : str, default=""
        The sha256 of the file.
    """

    session: Any
    target: Target = None
    output: int = 0
    name: str = "an ONNX model"
    module: nn.Module | None = None
    why_no_gradient: str | None = None
    digest: str = ""
    _agreed: list[bool] = field(default_factory=list)

    device = torch.device("cpu")

    @property
    def differentiable(self) -> bool:
        """Whether there is a converted network."""
        return self.module is not None

    @property
    def dtype(self) -> torch.dtype | None:
        """The floating type that the model declares for its inputs."""
        types = [_TYPES.get(one.type) for one in self.session.get_inputs()]
        return torch.float64 if np.float64 in types else torch.float32

    def outputs(self, points: Points) -> Tensor:
        """The output that is read, as a tensor."""
        with report_failure(f"The ONNX model {self.name}", points, self._advice()):
            feed = self._feed(points)
            rows, size = len(next(iter(feed.values()))), self._batch_size()
            parts = [self._run(feed, start, start + (size or rows)) for start in range(0, rows, size or rows)]
            return torch.from_numpy(np.concatenate(parts)[:rows])

    def values(self, points: Points, targets: Sequence[Target]) -> list[Tensor]:
        """F of every target, each (rows,), by one forward."""
        outputs, rows = self.outputs(points), leaves(points)[0].shape[0]
        values = []
        for target in targets:
            with report_failure(f"The target {describe(target)}", points):
                value = select(outputs, target)
            if value.shape[0] != rows:
                raise ModelError(f"The ONNX model {self.name} returned {value.shape[0]} values for {rows} rows.")
            values.append(value if value.is_floating_point() else value.double())
        return values

    def values_and_gradients(self, points: Points, targets: Sequence[Target]) -> tuple[list[Tensor], list[Points]]:
        """F and dF/dpoint of every target, by the converted network."""
        if self.module is None:
            raise NoGradientError(
                f"The ONNX model {self.name} has no gradient here ({self.why_no_gradient}), so there are no rays; use "
                f'plan="endpoint" or plan="values".'
            )
        values, gradients = TorchModel(self.module).values_and_gradients(points, targets)
        if not self._agreed:
            self._agreed.append(self._agrees(self.values(points, targets), values))
        if not self._agreed[0]:
            raise NoGradientError(
                f"The network that onnx2torch made of {self.name} computes other values than onnxruntime, so there are "
                f"no rays; use gralis.models.onnx(..., gradients=False)."
            )
        return values, gradients

    def fingerprint(self) -> str:
        """The name and the sha256 of the file."""
        return f"{self.name} {self.digest}".strip()

    def __repr__(self) -> str:
        return f"OnnxModel({self.name}, target={describe(self.target)})"

    @staticmethod
    def _agrees(ours: list[Tensor], theirs: list[Tensor]) -> bool:
        a, b = torch.stack(ours).double(), torch.stack(theirs).double()
        return bool((a - b).abs().max() <= _AGREEMENT * max(float(a.abs().max()), 1e-6))

    def _feed(self, points: Points) -> dict[str, NDArray[Any]]:
        """The arrays by the names of the inputs, in the types that the model declares."""
        declared = {one.name: one for one in self.session.get_inputs()}
        given = leaves(points)
        names = list(points) if isinstance(points, Mapping) else list(declared)
        if set(names) != set(declared) or len(given) != len(declared):
            got = f"{names}" if isinstance(points, Mapping) else f"{len(given)} arrays"
            raise GralisError(f"The ONNX model {self.name} has the inputs {', '.join(declared)}; x has {got}.")
        arrays = zip(names, (leaf.detach().cpu().numpy() for leaf in given), strict=True)
        return {name: array.astype(_TYPES.get(declared[name].type, array.dtype)) for name, array in arrays}

    def _batch_size(self) -> int | None:
        """The batch size with which the model was exported; None if any size is accepted."""
        sizes = [one.shape[0] for one in self.session.get_inputs() if one.shape]
        return next((int(size) for size in sizes if isinstance(size, int) and size > 0), None)

    def _run(self, feed: Mapping[str, NDArray[Any]], start: int, stop: int) -> NDArray[Any]:
        """The output for some rows, filled up to the batch size with copies of the last row."""
        part = {name: array[start:stop] for name, array in feed.items()}
        missing = stop - start - len(next(iter(part.values())))
        if missing:
            part = {name: np.concatenate([a, np.repeat(a[-1:], missing, axis=0)]) for name, a in part.items()}
        return _array(self.session.run(None, part)[self.output])

    def _advice(self) -> str:
        inputs = "; ".join(f"{one.name} {one.type} {one.shape}" for one in self.session.get_inputs())
        return f"(Its inputs are: {inputs}; x is one input without a batch axis.)"


class _Positional(nn.Module):
    """The converted network: it takes its inputs in order, and its output is the one that is read."""

    def __init__(self, module: nn.Module, names: list[str], output: int) -> None:
        super().__init__()
        self.module, self.names, self.output = module.eval(), names, output
        self.eval()

    def forward(self, *given: Tensor, **named: Tensor) -> Any:
        result = self.module(*given, *(named[name] for name in self.names if name in named))
        return result[self.output] if isinstance(result, tuple | list) else result


def _session(model: object) -> tuple[Any, Path | None]:
    """The session, and the file if it is known."""
    try:
        import onnxruntime
    except ImportError as error:
        raise GralisError("An ONNX model needs onnxruntime: pip install onnxruntime.") from error
    if isinstance(model, str | Path):
        path = as_path(model, "models.onnx", "model")
        if not path.is_file():
            raise bad("model", "models.onnx", "a file .onnx or an onnxruntime.InferenceSession", repr(str(model)))
        try:
            return onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"]), path
        except Exception as error:
            raise GralisError(f"onnxruntime cannot read {path} ({_first_line(error)}).") from error
    if not (hasattr(model, "run") and hasattr(model, "get_inputs") and hasattr(model, "get_outputs")):
        raise bad("model", "models.onnx", "a file .onnx or an onnxruntime.InferenceSession", kind(model))
    known = getattr(model, "_model_path", None)
    return model, Path(known) if isinstance(known, str) and known else None


def _converted(path: Path | None) -> tuple[nn.Module | None, str | None]:
    """The network that onnx2torch makes of the file, or None and the reason."""
    if path is None:
        return None, "the session does not say which file it was made from; give the path for gradients"
    try:
        import onnx2torch
    except Exception as error:  # torchvision, which it imports, may fail in many ways
        return None, f"onnx2torch cannot be imported: {_first_line(error)}"
    try:
        return onnx2torch.convert(str(path)), None
    except Exception as error:
        return None, f"onnx2torch cannot convert it: {_first_line(error)}"


def _place(session: Any, output: str | None) -> int:
    """The place of the output that is read."""
    outputs = session.get_outputs()
    names = [one.name for one in outputs]
    if output is not None or "logits" in names:
        return names.index(output or "logits")
    real = [place for place, one in enumerate(outputs) if "int" not in one.type.partition(",")[0]]
    real = real or list(range(len(outputs)))
    readable = [p for p, one in enumerate(outputs) if one.type.startswith("seq(map") or p in real]
    if len(readable) > 1:
        raise bad("output", "models.onnx", f"one of {', '.join(names)}", "None, which does not say which")
    return readable[0]


def _array(output: Any) -> NDArray[Any]:
    """An output as an array; the probabilities of scikit-learn's converters are a list of dicts."""
    if isinstance(output, list) and output and isinstance(output[0], Mapping):
        return np.array([[row[key] for key in sorted(row)] for row in output])
    return np.asarray(output)


def _digest(path: Path | None) -> str:
    return "" if path is None else hashlib.sha256(path.read_bytes()).hexdigest()


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
