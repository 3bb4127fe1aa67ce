"""`text.explain`: which words of a text made a classifier or an encoder say that."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import torch
from torch import nn

from gralis.errors import bad
from gralis.kernels import Gaussian
from gralis.models.spliced_tokens import SplicedTokens
from gralis.models.token_inputs import PresentTokens, TokenSequence, accepts, logits_in
from gralis.plans import Plan
from gralis.results.explanation import Explanation
from gralis.results.explanations import Explanations
from gralis.targets import Target, Targets
from gralis.text.absence import Absent, presence
from gralis.text.closer_look import drill_budget, lifted, opened
from gralis.text.encoded import TextFeatures
from gralis.text.reading import Reading
from gralis.text.text_explanation import Deeper, TextExplanation

__all__ = ["explain", "labelled", "sequence_of"]

_OWNER = "text.explain"


def explain(
    model: nn.Module,
    tokenizer: Any,
    text: object,
    *,
    target: Target | Targets | str = None,
    features: object = None,
    absent: Absent = "auto",
    kernel: object = Gaussian(0.75),
    plan: str | Plan | None = None,
    budget: int | None = 1024,
    tolerance: float | None = None,
    level: float = 0.95,
    quadrature: str | None = None,
    n_nodes: int | None = None,
    max_seconds: float | None = None,
    seed: int | None = 0,
    batch_size: int | Literal["auto"] = "auto",
    max_memory: int | None = None,
    progress: bool | Callable[[int, int], None] | None = None,
) -> TextExplanation | Explanations:
    """phi of every word (or token, sentence, passage) of a text, for a model with input embeddings.

    A ray moves the embeddings of a coalition of words from those of absent words to those of the words themselves.
    Special tokens and fixed text are no features. Positions and the attention mask stay those of the whole text.

    Parameters
    ----------
    model : transformers model
        A torch model with `get_input_embeddings()` and an `inputs_embeds` argument.
    tokenizer : transformers tokenizer
        A fast tokenizer, which says where its tokens stand in the text.
    text : str, Prompt, or list of dict
        What to explain; a `Prompt` knows its parts, and a list of turns goes through the chat template.
    target : int, str, tuple, callable, list of them, or "all", optional
        Which output to explain, as in `gralis.explain`. A str is "predicted", or a label of the model's configuration.
    features : {"tokens", "words", "sentences", "passages"}, list of spans or texts, or dict, optional
        The features. By default the parts of a `Prompt`, otherwise words. A list holds `Span` values, (start, stop),
        (start, stop, name), or parts of the text; a dict maps names to (start, stop). Text between spans is fixed.
    absent : str, int, dict or None, default="auto"
        What an absent feature is: "mask", "pad", "eos", "unk", "bos" or a token id put this token in its place, "mean"
        and "zero" the mean embedding or zeros. "removed" makes the text shorter, and "hidden" excludes the tokens by
        the attention mask; both give coalition values only. A dict maps names of features to texts that replace them;
        features that it does not name are removed. "auto" takes the first of mask, pad, eos, unk that exists.
    kernel : Kernel, default=Gaussian(0.75)
        How near coalitions count, as in `gralis.explain`.
    plan : str or Plan, optional
        As in `gralis.explain`; by default "shared", and "values" where only coalition values exist.
    budget : int or None, default=1024
        The gradients at most, or forwards for a plan without rays.
    tolerance : float, optional
        Stop once all half-widths are below this share of F(x) - F(x').
    level : float, default=0.95
        The level of the intervals that `tolerance` refers to.
    quadrature : str, optional
        The rule of the nodes on a ray, as in `gralis.explain`.
    n_nodes : int, optional
        The number of nodes on a ray.
    max_seconds : float, optional
        Stop after this time and return the result so far.
    seed : int or None, default=0
        The seed of every random choice.
    batch_size : int or "auto", default="auto"
        The number of texts in one call of the model.
    max_memory : int, optional
        The number of bytes that one batch may take.
    progress : bool or callable, optional
        As in `gralis.explain`.

    Returns
    -------
    TextExplanation or Explanations
        An `Explanation` with `drill` for a closer look; `Explanations` if `target` is a list or "all".
    """
    reading = Reading.of(model, tokenizer, text, absent, _OWNER)
    chosen = _target(model, target)
    options = {
        "target": chosen,
        "kernel": kernel,
        "plan": plan,
        "budget": budget,
        "tolerance": tolerance,
        "level": level,
        "quadrature": quadrature,
        "n_nodes": n_nodes,
        "max_seconds": max_seconds,
        "seed": seed,
        "batch_size": batch_size,
        "max_memory": max_memory,
        "progress": progress,
    }
    explanations, labels = _explained(reading, reading.with_features(features), options)
    several = isinstance(chosen, list) or (isinstance(chosen, str) and chosen == "all")
    return Explanations(explanations, labels) if several else explanations[0]


def _explained(
    reading: Reading,
    text: TextFeatures,
    options: Mapping[str, Any],
    known: TextExplanation | None = None,
    budget: int | None = None,
) -> tuple[tuple[TextExplanation, ...], tuple[str, ...]]:
    """One explanation per target, each of which can look closer, and their labels."""
    module = labelled(reading, text, options["target"])
    before = [] if known is None else lifted([known], reading.encoded.with_spans(known.spans, "parts"), text)
    afforded = options["budget"] if known is None else budget
    explanations, problem = reading.explained(module, text, {**options, "budget": afforded}, {}, before)

    def closer(target: Target) -> Deeper:
        def look(
            known: TextExplanation, feature: int | str, into: str | Sequence[object] | None, budget: int | None
        ) -> TextExplanation:
            tokens = reading.encoded.token_spans()
            spans = opened(reading.encoded.text, known.spans, feature, into, tokens, reading.absent)
            afforded = drill_budget(options["budget"], budget, len(spans))
            parts = reading.encoded.with_spans(spans, "parts")
            return _explained(reading, parts, {**options, "target": target}, known, afforded)[0][0]

        return look

    found = zip(explanations, problem.targets, strict=True)
    named = tuple(TextExplanation.of(_with_class(reading.model, each), closer(target)) for each, target in found)
    return named, problem.target_labels


def labelled(reading: Reading, text: TextFeatures, target: Target | Targets | str) -> PresentTokens | SplicedTokens:
    """What the classifier says of the text, as a function of the presence of its features."""
    several = target if isinstance(target, list) else [target]
    read = _as_returned if any(map(callable, several)) else logits_in  # a function receives what the model returned
    sequence = sequence_of(reading.model, text)
    return presence(reading.model, reading.tokenizer, text, sequence, reading.absent, read, reading.owner)


def sequence_of(model: nn.Module, text: TextFeatures) -> TokenSequence:
    """The tokens of the text as the model receives them: one row, nothing padded, positions from the first token on."""
    ids = torch.tensor(text.encoded.ids)
    constants = {"attention_mask": torch.ones_like(ids)} if accepts(model, "attention_mask") else {}
    if text.encoded.types is not None and accepts(model, "token_type_ids"):
        constants["token_type_ids"] = torch.tensor(text.encoded.types)
    return TokenSequence(ids, torch.from_numpy(text.owner), text.n_features, constants)


def _target(model: nn.Module, target: Target | Targets | str) -> Target | Targets | str:
    """The target, with labels of the configuration as their numbers."""
    if isinstance(target, list):
        return [_target(model, each) for each in target]  # type: ignore[return-value]
    if not isinstance(target, str) or target in ("all", "predicted"):
        return target
    labels = getattr(getattr(model, "config", None), "label2id", None) or {}
    if target not in labels:
        allowed = f"one of the labels {', '.join(map(repr, labels))}, 'predicted', 'all', or a number"
        raise bad("target", _OWNER, allowed, repr(target))
    return int(labels[target])


def _with_class(model: nn.Module, explanation: Explanation) -> Explanation:
    """The explanation with the name of its class, if the configuration of the model gives it one."""
    names = getattr(getattr(model, "config", None), "id2label", None) or {}
    for number, name in names.items():
        if explanation.provenance["target"] == f"output[{number}]" and name != f"LABEL_{number}":
            return replace(explanation, provenance={**explanation.provenance, "class": str(name)})
    return explanation


def _as_returned(outputs: Any) -> Any:
    return outputs
