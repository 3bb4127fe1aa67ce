"""gralis.toml: one section per command, with the names of its options. The command line takes precedence."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import typer

from gralis.errors import GralisError

__all__ = ["FILE", "configured", "section"]

FILE = "gralis.toml"
_ONLY_BY_HAND = (
    "allow-pickle",
    "config",
    "debug",
    "help",
)  # a file that happens to be in the folder must not decide these


def configured(context: typer.Context, value: Path | None) -> Path | None:
    """Take the defaults of this command from the file. typer calls it before it reads any other option."""
    path = value if value is not None else Path(FILE) if Path(FILE).is_file() else None
    if path is not None and not context.resilient_parsing:
        known = [p for p in context.command.params if p.param_type_name == "option"]
        options = {flag.removeprefix("--"): p for p in known for flag in p.opts if flag.startswith("--")}
        commands = [] if context.parent is None else list(context.parent.command.commands)
        context.default_map = section(path, str(context.command.name), options, commands)
    return value


def section(path: Path, command: str, options: Mapping[str, Any], commands: Iterable[str]) -> dict[str, Any]:
    """The section of one command as text values. Every key must be the name of an option."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, RecursionError, tomllib.TOMLDecodeError) as error:
        raise GralisError(f"{path} cannot be read as TOML: {error}.") from error
    for name, entry in content.items():
        if name not in commands or not isinstance(entry, dict):
            raise GralisError(f"{path}: there is no section [{name}]; {_close(name, commands)}.")
    defaults: dict[str, Any] = {}
    for key, value in content.get(command, {}).items():
        name = key.replace("_", "-")
        if name in _ONLY_BY_HAND and name in options:
            raise GralisError(f"{path}: {key} can only be given on the command line.")
        if name not in options:
            known = [option for option in options if option not in _ONLY_BY_HAND]
            raise GralisError(f"{path}: gralis {command} has no option {key!r}; {_close(key, known)}.")
        defaults[str(options[name].name)] = _text(value, options[name], f"{path}: {key}")
    return defaults


def _text(value: Any, option: Any, where: str) -> Any:
    """The value as it would stand on the command line."""
    if isinstance(value, bool) or option.is_flag:
        if not (isinstance(value, bool) and option.is_flag):
            raise GralisError(f"{where} must be {'true or false' if option.is_flag else 'text or a number'}.")
        return value
    several = value if isinstance(value, list) else [value]
    if not all(isinstance(each, str | int | float) and not isinstance(each, bool) for each in several):
        raise GralisError(f"{where} must be text, a number, or a list of these.")
    return [str(each) for each in several] if option.multiple else ",".join(str(each) for each in several)


def _close(name: str, known: Iterable[str]) -> str:
    """Advice: the names that are similar, or all names."""
    known = sorted(known)
    close = difflib.get_close_matches(name.replace("_", "-"), known, n=3, cutoff=0.5)
    return f"did you mean {' or '.join(close)}?".rstrip("?") if close else f"there are {', '.join(known)}"
