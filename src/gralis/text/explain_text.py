"""`text.explain`: which words of a text made a classifier or an encoder say that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import torch
from torch import nn

from gralis.api.explain import explain as explain_point
from gralis.errors import GralisError, bad
from gralis.kernels import Gaussian
from gralis.models.token_inputs import TokenSequence, accepts, embedding_of, logits_in
from gralis.plans import Plan
from gralis.results.explanation import Explanation
from gralis.results.explanations import Explanations
from gralis.targets import Target, Targets
from gralis.text.absence import Absent, is_values_only, presence
from gralis.text.encoded import TextFeatures, encode, spans_for
from gralis.text.prompt import readable

__all__ = ["chosen_plan", "explain", "require_room", "sequence_of"]


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
) -> Explanation | Explanations:
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
        Which output to explain, as in `gralis.explain`. A str is a label of the model's configuration.
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
    Explanation or Explanations
        `Explanations` if `target` is a list or "all".
    """
    owner = "text.explain"
    embedding_of(model, owner)
    prompt = readable(text, tokenizer, owner)
    encoded = encode(tokenizer, prompt if isinstance(prompt, str) else prompt.text, owner)
    require_room(model, len(encoded.ids), owner)
    grouped = spans_for(encoded, prompt, features, owner)
    chosen = _target(model, target)
    read = _reader(chosen)
    module = presence(model, tokenizer, grouped, sequence_of(model, grouped), absent, read, owner)
    result = explain_point(
        module,
        module.scale,
        target=chosen,
        features=grouped.features(),
        kernel=kernel,
        plan=chosen_plan(module, plan, owner),
        budget=budget,
        tolerance=tolerance,
        level=level,
        quadrature=quadrature,
        n_nodes=n_nodes,
        max_seconds=max_seconds,
        seed=seed,
        batch_size=batch_size,
        max_memory=max_memory,
        dtype=torch.float32,
        progress=progress,
    )
    described = f"a text whose features are absent ({absent if isinstance(absent, str | int) else 'replaced'})"
    return _with_baseline(result, described)


def _with_baseline(result: Explanation | Explanations, described: str) -> Explanation | Explanations:
    """The result, which says in words what its baseline is; at the point of presence it is just 0."""
    if isinstance(result, Explanations):
        return replace(result, each=tuple(_with_baseline(one, described) for one in result))  # type: ignore[misc]
    return replace(result, provenance={**result.provenance, "baseline": described})


def sequence_of(model: nn.Module, text: TextFeatures) -> TokenSequence:
    """The tokens of the text as the model receives them: one row, nothing padded, positions from the first token on."""
    ids = torch.tensor(text.encoded.ids)
    constants = {"attention_mask": torch.ones_like(ids)} if accepts(model, "attention_mask") else {}
    if text.encoded.types is not None and accepts(model, "token_type_ids"):
        constants["token_type_ids"] = torch.tensor(text.encoded.types)
    return TokenSequence(ids, torch.from_numpy(text.owner), text.n_features, constants)


def chosen_plan(module: nn.Module, plan: str | Plan | None, owner: str) -> str | Plan:
    """The plan; where only coalition values exist, a plan with rays is refused."""
    if not is_values_only(module):
        return "shared" if plan is None else plan
    chosen = "values" if plan is None else plan
    if getattr(chosen, "name", chosen) not in ("values", "endpoint"):
        advice = "Removed text has no embeddings between absent and present; put a token in its place to have rays."
        raise bad("plan", owner, "'values' or 'endpoint' where absent features are removed", repr(plan), advice)
    return chosen


def require_room(model: nn.Module, n_tokens: int, owner: str) -> None:
    """A text beyond the context window is refused."""
    config = getattr(model, "config", None)
    limits = [getattr(config, name, None) for name in ("max_position_embeddings", "n_positions")]
    if getattr(config, "model_type", "") in ("t5", "mt5", "umt5", "longt5"):  # relative positions know no end
        limits = []
    known = [limit for limit in limits if isinstance(limit, int) and limit > 0]
    if known and n_tokens > known[0]:
        raise GralisError(
            f"The {'prompt and the answer have' if 'generation' in owner else 'text has'} {n_tokens} tokens, and the "
            f"context window of this {type(model).__name__} holds {known[0]}; shorten the text, or leave out passages."
        )


def _target(model: nn.Module, target: Target | Targets | str) -> Target | Targets:
    """The target, with a label of the configuration as its number."""
    if not isinstance(target, str) or target == "all":
        return target  # type: ignore[return-value]
    labels = getattr(getattr(model, "config", None), "label2id", None) or {}
    if target not in labels:
        raise bad(
            "target", "text.explain", f"one of the labels {', '.join(map(repr, labels))}, or a number", repr(target)
        )
    return int(labels[target])


def _reader(target: Target | Targets) -> Callable[[Any], Any]:
    """A function as target receives what the model returned; otherwise the logits are read off."""
    several = target if isinstance(target, list) else [target]
    return _as_returned if any(map(callable, several)) else logits_in


def _as_returned(outputs: Any) -> Any:
    return outputs
