"""What a model wrote, token by token, and how likely each token was: the targets of a generation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from gralis.checks import is_whole, whole
from gralis.errors import GralisError, ModelError, bad
from gralis.models.device_map import input_device
from gralis.models.frozen import frozen
from gralis.models.spliced_tokens import SplicedTokens
from gralis.models.token_inputs import (
    PresentTokens,
    TokenSequence,
    accepts,
    embedding_of,
    logits_in,
)
from gralis.text.absence import presence
from gralis.text.encoded import Encoded, TextFeatures, encode, reserved_ids
from gralis.text.reading import Reading, room

__all__ = ["SCORES", "Answer", "Contrast", "answer_of", "answered", "is_encoder_decoder", "paired", "prompt_of"]

SCORES = ("logprob", "logit")


@dataclass(frozen=True)
class Answer:
    """The tokens that follow a prompt.

    Attributes
    ----------
    ids : tuple of int
        The token ids.
    tokens : tuple of str
        The tokens as text.
    text : str
        The whole answer.
    lead : tuple of int
        The special tokens with which a decoder begins every answer, as BART's <s>; they are read and not scored.
    """

    ids: tuple[int, ...]
    tokens: tuple[str, ...]
    text: str
    lead: tuple[int, ...] = ()


@dataclass(frozen=True)
class _Scores:
    """outputs -> (rows, n_tokens): the log-probability (or the logit) of every token of the answer."""

    ids: tuple[int, ...]
    score: str
    shift: int  # 1 if the logits at a place are about the next token

    def __call__(self, outputs: Any) -> Tensor:
        try:
            logits, n = logits_in(outputs), len(self.ids)
        except GralisError as error:
            raise ModelError(
                "The model returned no logits over a vocabulary, so it writes no answer; take the class with a "
                "language model's head (AutoModelForCausalLM or AutoModelForSeq2SeqLM)."
            ) from error
        if logits.ndim != 3 or logits.shape[1] < n + self.shift or logits.shape[2] <= max(self.ids):
            raise ModelError(
                f"The model returned logits of shape {tuple(logits.shape)}; a model that writes returns (rows, tokens, "
                f"vocabulary). What a classifier says is explained by gralis.text.explain."
            )
        at = logits[:, -(n + self.shift) : logits.shape[1] - self.shift]  # (rows, n, vocabulary)
        at = at.float()
        scores = torch.log_softmax(at, dim=-1) if self.score == "logprob" else at
        wanted = torch.tensor(self.ids, device=at.device)
        return scores.gather(2, wanted.expand(len(at), -1)[..., None])[..., 0]


class Contrast(nn.Module):
    """The scores of one answer minus those of another, token by token; the shorter answer is followed by zeros."""

    scale: Tensor
    answer: PresentTokens | SplicedTokens
    alternative: PresentTokens | SplicedTokens

    def __init__(self, answer: PresentTokens | SplicedTokens, alternative: PresentTokens | SplicedTokens) -> None:
        super().__init__()
        self.answer, self.alternative = answer, alternative
        self.training = answer.training
        self.register_buffer("scale", answer.scale)

    @property
    def input_device(self) -> torch.device | None:
        """Where the input embeddings of the network are."""
        return self.answer.input_device

    @property
    def shown_as(self) -> str:
        """The class of the network, which error texts name."""
        return self.answer.shown_as

    @property
    def rounding(self) -> float:
        """The relative rounding error of the type in which the network computes."""
        return self.answer.rounding

    @property
    def row_bytes(self) -> tuple[int, int]:
        """What both answers need together."""
        ours, theirs = self.answer.row_bytes, self.alternative.row_bytes
        return ours[0] + theirs[0], ours[1] + theirs[1]

    def forward(self, points: Tensor) -> Tensor:
        """(rows, n_tokens) of the longer answer."""
        ours, theirs = self.answer(points), self.alternative(points)
        longest = max(ours.shape[1], theirs.shape[1])
        ours, theirs = (nn.functional.pad(each, (0, longest - each.shape[1])) for each in (ours, theirs))
        return ours - theirs


def paired(answers: Sequence[Sequence[str]]) -> list[str]:
    """The tokens of an answer; beside them those of an alternative at the same places, where they differ.

    >>> paired([["in", " Paris"], ["in", " Lyon", " now"]])
    ['in', ' Paris | Lyon', '– | now']
    """
    if len(answers) == 1:
        return list(answers[0])
    n = max(map(len, answers))
    ours, theirs = ([*each, *["–"] * (n - len(each))] for each in answers)
    return [f"{a} | {b.strip()}" if a != b else a for a, b in zip(ours, theirs, strict=True)]


def is_encoder_decoder(model: nn.Module) -> bool:
    """Whether an encoder reads the prompt and a decoder writes the answer."""
    return bool(getattr(getattr(model, "config", None), "is_encoder_decoder", False))


def prompt_of(model: nn.Module, encoded: Encoded) -> Encoded:
    """The tokens before the answer: a causal model continues the text, so no token that the tokenizer adds closes it.

    Special tokens that are written in the text, such as the role mark at the end of a chat template, stay.
    """
    last = len(encoded.ids)
    while not is_encoder_decoder(model) and last > 1 and encoded.special[last - 1] and not encoded.written(last - 1):
        last -= 1
    types = None if encoded.types is None else encoded.types[:last]
    return Encoded(encoded.text, encoded.ids[:last], encoded.offsets[:last], encoded.special[:last], types)


def answer_of(reading: Reading, continuation: object, max_new_tokens: int, name: str) -> Answer:
    """The given continuation as tokens, or what the model writes by itself, most likely token first."""
    model, tokenizer, prompt, owner = reading.model, reading.tokenizer, reading.encoded, reading.owner
    size = len(next(embedding_of(model, owner).parameters()))
    lead: list[int] = []
    if continuation is None:
        lead, ids = _generated(model, tokenizer, prompt, whole(max_new_tokens, "max_new_tokens", 1, owner))
    elif isinstance(continuation, str) and continuation.strip():
        lead, ids = _continued(model, tokenizer, prompt, continuation, owner)
    elif (
        isinstance(continuation, Sequence)
        and continuation
        and all(is_whole(token, 0, size - 1) for token in continuation)
    ):
        ids = [int(token) for token in continuation]
    else:
        allowed = f"None, a text with at least one word, or a list of token ids below {size}"
        raise bad(name, owner, allowed, repr(continuation))
    if not ids and continuation is not None:
        raise bad(name, owner, "an answer with at least one token that is not special", repr(continuation))
    if not ids:
        raise ModelError(
            "The model answered with no token at all, so there is nothing to explain; give a continuation."
        )
    return Answer(tuple(ids), tuple(tokenizer.decode([token]) for token in ids), tokenizer.decode(ids), tuple(lead))


def answered(reading: Reading, text: TextFeatures, answer: Answer, score: str) -> PresentTokens | SplicedTokens:
    """The scores of the answer's tokens, (rows, n_tokens), as a function of the presence of the prompt's features."""
    model = reading.model
    ids = torch.tensor(text.encoded.ids)
    own, later = torch.from_numpy(text.owner), torch.tensor(answer.ids)
    others: dict[str, Any] = {}
    if is_encoder_decoder(model):
        begin = [_decoder_start(model), *answer.lead]
        others["decoder_input_ids"] = torch.tensor([[*begin, *answer.ids[:-1]]])
        read = _Scores(answer.ids, score, 0)
    else:
        ids, own = torch.cat([ids, later]), torch.cat([own, torch.full_like(later, -1)])
        read = _Scores(answer.ids, score, 1)
        if accepts(model, "logits_to_keep"):  # a long prompt needs no logits of its own
            others["logits_to_keep"] = len(answer.ids) + 1
    if accepts(model, "use_cache"):
        others["use_cache"] = False
    constants = {"attention_mask": torch.ones_like(ids)} if accepts(model, "attention_mask") else {}
    if text.encoded.types is not None and accepts(model, "token_type_ids"):
        constants["token_type_ids"] = torch.zeros_like(ids)
    sequence = TokenSequence(ids, own, text.n_features, constants, others)
    causal = not is_encoder_decoder(model)
    absent, owner = reading.absent, reading.owner
    return presence(model, reading.tokenizer, text, sequence, absent, read, owner, causal=causal)


def _decoder_start(model: Any) -> int:
    """The token from which a decoder writes, as `generate` chooses it."""
    configs = [getattr(model, "generation_config", None), model.config]
    names = ("decoder_start_token_id", "bos_token_id", "pad_token_id")
    known = (getattr(config, name, None) for name in names for config in configs)
    return int(next((token for token in known if isinstance(token, int)), 0))


def _generated(model: Any, tokenizer: Any, prompt: Encoded, most: int) -> tuple[list[int], list[int]]:
    """What the model writes, as the special tokens that begin it and the rest."""
    if not callable(getattr(model, "generate", None)):
        raise bad("continuation", "text.explain_generation", "given for a model without generate()", "None")
    ids = torch.tensor([prompt.ids], device=input_device(model))
    window = room(model)
    left = most if window is None else window - (1 if is_encoder_decoder(model) else len(prompt.ids))
    if left < 1:
        raise GralisError(
            f"The prompt of {len(prompt.ids)} tokens fills the context window of this {type(model).__name__}, so there "
            f"is no room for an answer; shorten the prompt, or leave out passages."
        )
    pad = next((token for token in (tokenizer.pad_token_id, tokenizer.eos_token_id) if token is not None), 0)
    with torch.no_grad(), frozen(model):
        written = model.generate(
            input_ids=ids,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=min(most, left),
            do_sample=False,
            num_beams=1,
            pad_token_id=pad,
        )[0].tolist()
    begin = 1 if is_encoder_decoder(model) else len(prompt.ids)
    return _parted(tokenizer, written[begin:], is_encoder_decoder(model))


def _parted(tokenizer: Any, ids: Sequence[int], led: bool) -> tuple[list[int], list[int]]:
    """The special tokens that begin what a decoder writes, if it is `led` by any, and the answer without its end."""
    reserved, start, stop = reserved_ids(tokenizer), 0, len(ids)
    while stop and ids[stop - 1] in reserved:  # the end of the answer is no part of it
        stop -= 1
    while led and start < stop and ids[start] in reserved:
        start += 1
    return [int(token) for token in ids[:start]], [int(token) for token in ids[start:stop]]


def _continued(
    model: nn.Module, tokenizer: Any, prompt: Encoded, continuation: str, owner: str
) -> tuple[list[int], list[int]]:
    """The tokens of the continuation after the prompt; the tokens of the prompt must stay what they are."""
    if is_encoder_decoder(model):
        return _parted(tokenizer, tokenizer(text_target=continuation)["input_ids"], True)
    together = list(encode(tokenizer, prompt.text + continuation, owner).ids)
    n = len(prompt.ids)
    if tuple(together[:n]) != prompt.ids:
        place = next((i for i, (a, b) in enumerate(zip(prompt.ids, together, strict=False)) if a != b), n - 1)
        old, new = (tokenizer.decode(ids[place : place + 1]) for ids in (list(prompt.ids), together))
        raise GralisError(
            f"The continuation {continuation[:40]!r} does not tokenise cleanly after the prompt: its token {old!r} "
            f"becomes {new!r}; begin the continuation with a space or a new line, or give token ids."
        )
    return _parted(tokenizer, together[n:], False)
