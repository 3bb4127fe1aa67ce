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
from gralis.targets import parse
from gralis.text import explain, explain_generation

__all__ = ["explain_prompt", "explain_words", "pair_of", "text_options"]


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
    model, tokenizer = pair_of(pair, "--text needs")
    explanation = explain(model, tokenizer, text, target=_target(model, target), features=features, **options)
    assert isinstance(explanation, Explanation)
    called = explanation.provenance.get("class")
    named = f"{explanation.provenance['target']}{f' ({called})' if called else ''}"
    if target is None:
        named += ", the largest"
    files = []
    if folder is not None:
        stem = folder.stem("text")
        files = [explanation.save(stem.with_name(f"{stem.name}.gralis"))]
        files.append(write_report(explanation, stem.with_name(f"{stem.name}.html")))
    if as_json:
        print(to_json({"input": text, "files": list(map(str, files)), **explanation.to_dict()}), flush=True)
    else:
        print_explanation(explanation, text, named)
        _written(files)
    return NOT_REACHED if explanation.reached is False else DONE


def explain_prompt(
    pair: object,
    prompt: Path,
    answer: str | None,
    alternative: str | None,
    features: str | None,
    options: Mapping[str, Any],
    folder: OutputFolder | None,
    as_json: bool,
) -> int:
    """Explain what a model writes after the prompt in a file, token by token."""
    model, tokenizer = pair_of(pair, "--prompt needs")
    try:
        text = prompt.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise GralisError(f"The file {prompt} of --prompt cannot be read as text: {error}.") from error
    generation = explain_generation(
        model, tokenizer, text, answer, alternative=alternative, features=features, **options
    )
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


def text_options(
    parameters: Mapping[str, Any], baseline: str | None, unused: Mapping[str, object], door: str
) -> dict[str, Any]:
    """The options of a text: those that were given, and what an absent word is. What has no meaning is refused."""
    for option, value in unused.items():
        if value is not None:
            raise GralisError(f"{option} has no meaning together with {door}; leave it out.")
    absent: str | int = "auto" if baseline is None else int(baseline) if baseline.isdigit() else baseline
    return {**{name: value for name, value in parameters.items() if value is not None}, "absent": absent}


def pair_of(made: object, who: str) -> tuple[Any, Any]:
    """What the factory of --model made: a model with its tokenizer."""
    if isinstance(made, tuple) and len(made) == 2:
        return made
    raise GralisError(f"{who} a factory that returns (model, tokenizer); --model made a {type(made).__name__}.")


def _target(model: Any, target: str | None) -> Any:
    """A label of the model, what `parse` reads, or by default the class with the largest output."""
    labels = getattr(getattr(model, "config", None), "label2id", None) or {}
    if target is None:
        return "predicted"
    return target if target in labels or target.isidentifier() else parse(target)


def _written(files: list[Path]) -> None:
    if files:
        print(f"written: {', '.join(one_line(str(path)) for path in files)}")
