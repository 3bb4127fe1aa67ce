"""A model from the value of --model: code by its name, a torch.export program, an estimator, or an allowed pickle."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import pickle
import sys
import zipfile
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import nn

from gralis.cli.estimator_file import load_skops, load_unpickled
from gralis.cli.exported_program import load_program
from gralis.errors import GralisError
from gralis.models import Model
from gralis.models.estimator_model import is_estimator

__all__ = ["load_model", "load_weights", "model_file"]

_FORMS = (
    "pkg.module:factory, file.py:factory, a file .skops, or a file .pt2 made by torch.export.save (with --allow-pickle)"
)
_PICKLES = (".pkl", ".pickle", ".joblib")


def load_model(name: str, weights: Path | None = None, *, allow_pickle: bool = False) -> Any:
    """The model in evaluation mode, with these weights."""
    suffix = Path(name).suffix.lower()
    if suffix == ".pt2":
        model: Any = load_program(_file(name, "--model"), allow_pickle=allow_pickle)
        if weights is not None:
            raise GralisError("A .pt2 program holds its own weights; leave --weights out.")
        return model
    if suffix == ".skops":
        return load_skops(_file(name, "--model"), allow_pickle=allow_pickle)
    if suffix in (".pt", ".pth", ".pkl", ".pickle", ".joblib", ".bin"):
        return _unpickled(_file(name, "--model"), allow_pickle)
    model = _made(name)
    if weights is not None:
        if not isinstance(model, nn.Module):
            raise GralisError(f"--weights need a torch.nn.Module; {name} gives a {type(model).__name__}.")
        _fill(model, load_weights(_file(weights, "--weights"), allow_pickle=allow_pickle), weights)
    return model.eval() if isinstance(model, nn.Module) else model


def model_file(name: str) -> dict[str, str]:
    """The sha256 of the file that holds the code of --model, as a setting of a run that may be continued later."""
    place = name.rpartition(":")[0] if Path(name).suffix.lower() not in (".pt2", ".skops") else name
    path = Path(place)
    if not path.is_file():
        with suppress(ImportError, ValueError, AttributeError):
            spec = importlib.util.find_spec(place)
            path = Path("" if spec is None or spec.origin is None else spec.origin)
    return {"model_file": hashlib.sha256(path.read_bytes()).hexdigest()} if path.is_file() else {}


def load_weights(path: Path, *, allow_pickle: bool = False) -> dict[str, Any]:
    """A state dict: safetensors, or torch.load with weights_only=True, which runs no code."""
    if path.suffix.lower() == ".safetensors":
        try:
            from safetensors import SafetensorError
            from safetensors.torch import load_file
        except ImportError as error:
            raise GralisError('Reading .safetensors needs safetensors: pip install "gralis[cli]".') from error
        try:
            return dict(load_file(path))
        except (SafetensorError, OSError, ValueError) as error:
            raise GralisError(f"{path} is not a whole safetensors file ({error}).") from error
    content = _torch_load(path, weights_only=not allow_pickle)
    for key in ("state_dict", "model_state_dict", "model"):  # a checkpoint that contains it
        if isinstance(content, dict) and isinstance(content.get(key), dict):
            content = content[key]
    if not isinstance(content, dict) or not all(isinstance(key, str) for key in content):
        raise GralisError(f"{path} holds a {type(content).__name__}, not the state_dict of a model.")
    return content


def _unpickled(path: Path, allow_pickle: bool) -> Any:
    if not allow_pickle:
        raise GralisError(
            f"{path} is a pickle, which can run any code when it is loaded; if you trust whoever made it add "
            f"--allow-pickle, else use --model pkg.module:factory --weights {path.name}."
        )
    if path.suffix.lower() in _PICKLES and not zipfile.is_zipfile(path):  # torch.save writes a zip file
        return load_unpickled(path)
    model = _torch_load(path, weights_only=False)
    if is_estimator(model):
        return model
    if not isinstance(model, nn.Module):
        advice = "; a state_dict goes to --weights" if isinstance(model, dict) else ""
        raise GralisError(f"{path} holds a {type(model).__name__}, not a model{advice}.")
    return model.eval()


def _torch_load(path: Path, *, weights_only: bool) -> Any:
    try:
        return torch.load(path, map_location="cpu", weights_only=weights_only)
    except pickle.UnpicklingError as error:
        if weights_only and "Unsupported operand" not in str(error):  # that message means: not a pickle
            raise GralisError(
                f"{path} holds more than plain weights, and loading that can run any code; save its state_dict, or "
                f"add --allow-pickle if you trust whoever made it."
            ) from error
        raise GralisError(f"{path} is not a file that torch.load can read.") from error
    except (RuntimeError, EOFError, OSError, ValueError, KeyError, AttributeError, zipfile.BadZipFile) as error:
        raise GralisError(f"{path} is not a file that torch.load can read ({_first_line(error)}).") from error
    except ImportError as error:
        raise GralisError(f"{path} needs code that cannot be imported ({error}).") from error


def _fill(model: nn.Module, state: dict[str, Any], path: Path) -> None:
    try:
        model.load_state_dict(state)
    except (RuntimeError, TypeError, AttributeError) as error:
        problems = " ".join(str(error).split()).partition(": ")[2] or str(error)
        raise GralisError(f"The weights in {path} do not fit the model: {problems[:300]}") from error


def _made(name: str) -> Any:
    """What the factory returns, or the model itself if the name refers to one."""
    place, colon, attribute = name.rpartition(":")
    if not colon or not place or not attribute:
        raise GralisError(f"--model must be {_FORMS}. Got {name!r}.")
    value: Any = _code(place)
    for part in attribute.split("."):
        if not hasattr(value, part):
            raise GralisError(f"--model {name}: {place} has no {part!r}; its names are {_names(value)}.")
        value = getattr(value, part)
    if isinstance(value, nn.Module) or (isinstance(value, Model) and not isinstance(value, type)):
        return value
    if is_estimator(value):
        return value
    if not callable(value):
        raise GralisError(f"--model {name}: {attribute} is a {type(value).__name__}, not a function making a model.")
    try:
        model = value()
    except Exception as error:
        raise GralisError(
            f"--model {name}: calling {attribute}() failed ({type(error).__name__}: {_first_line(error)}); it must "
            f"take no arguments and return the model."
        ) from error
    if isinstance(model, tuple) and len(model) == 2 and isinstance(model[0], nn.Module):
        model[0].eval()
        return model  # a model with its tokenizer, for --text and --prompt
    if isinstance(model, type) or not (callable(model) or is_estimator(model) or isinstance(model, Model)):
        raise GralisError(f"--model {name}: {attribute}() returned a {type(model).__name__}, not a model.")
    return model


def _code(place: str) -> ModuleType:
    """The module: a Python file by its path, or an importable name. The working folder is searched last."""
    is_file = place.endswith(".py")
    folder = str(Path(place).resolve().parent) if is_file else str(Path.cwd())
    if folder not in sys.path:
        sys.path.append(folder)
    try:
        if not is_file:
            return importlib.import_module(place)
        path = _file(place, "--model")
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules.setdefault(path.stem, module)  # so that pickle can find the classes of this file
        spec.loader.exec_module(module)
        return module
    except GralisError:
        raise
    except Exception as error:
        raise GralisError(
            f"--model: {place} cannot be imported ({type(error).__name__}: {_first_line(error)}); give {_FORMS}."
        ) from error


def _file(name: str | Path, option: str) -> Path:
    path = Path(name)
    if not path.is_file():
        raise GralisError(f"{option}: there is no file {path}.")
    return path


def _names(module: object) -> str:
    public = [name for name, value in vars(module).items() if callable(value) and not name.startswith("_")]
    return ", ".join(public[:8]) or "none"


def _first_line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0].rstrip(".")
