"""`gralis explain --text` and `--prompt`: a text for a classifier, or a prompt for a model that writes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gralis.cli.exit_codes import DONE, NOT_REACHED
from gralis.cli.messages import one_line
from gralis.cli.output import OutputFolder, write_report
from gralis.cli.printing import print_explanation, to_json
from gralis.errors import GralisError
from gralis.results.explanation import Explanation
from gralis.text import explain, explain_generation

__all__ = ["explain_prompt", "explain_words"]


def explain_words(
    pair: object,
    text: str,
    target: str | None,
    features: str | None,
    options: Mapping[str, Any],
    folder: OutputFolder | None,
    as_json: bool,
) -> int:
    """Explain what a classifier says of a text, by words or larger parts."""
    model, tokenizer = _pair(pair)
    chosen: Any = int(target) if target is not None and target.lstrip("-").isdigit() else target
    explanation = explain(model, tokenizer, text, target=chosen, features=features, **options)
    assert isinstance(explanation, Explanation)
    files = []
    if folder is not None:
        stem = folder.stem("text")
        files = [explanation.save(stem.with_name(f"{stem.name}.gralis"))]
        files.append(write_report(explanation, stem.with_name(f"{stem.name}.html")))
    if as_json:
        print(to_json({"input": text, "files": list(map(str, files)), **explanation.to_dict()}), flush=True)
    else:
        print_explanation(explanation, text, f"output {target}" if target is not None else "the output")
        _written(files)
    return NOT_REACHED if explanation.reached is False else DONE


def explain_prompt(
    pair: object,
    prompt: Path,
    answer: str | None,
    features: str | None,
    options: Mapping[str, Any],
    folder: OutputFolder | None,
    as_json: bool,
) -> int:
    """Explain what a model writes after the prompt in a file, token by token."""
    model, tokenizer = _pair(pair)
    try:
        text = prompt.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise GralisError(f"The file {prompt} of --prompt cannot be read as text: {error}.") from error
    generation = explain_generation(model, tokenizer, text, answer, features=features, **options)
    files = []
    if folder is not None:
        stem = folder.stem(prompt.name)
        files = [generation.save(stem.with_name(f"{stem.name}.zip"))]
        files.append(generation.report(stem.with_name(f"{stem.name}.html")))
    if as_json:
        numbers = {
            "tokens": generation.tokens,
            "features": generation.names,
            "values": generation.values,
            "half_widths": generation.half_widths(),
            "scores": generation.scores,
            "total": generation.total.to_dict(),
        }
        print(to_json({"input": str(prompt), "files": list(map(str, files)), **numbers}), flush=True)
    else:
        print(generation)
        _written(files)
    return DONE


def _pair(made: object) -> tuple[Any, Any]:
    """What the factory of --model made: a model with its tokenizer."""
    if isinstance(made, tuple) and len(made) == 2:
        return made
    raise GralisError(
        f"--text and --prompt need a factory that returns (model, tokenizer); --model made a {type(made).__name__}."
    )


def _written(files: list[Path]) -> None:
    if files:
        print(f"written: {', '.join(one_line(str(path)) for path in files)}")
