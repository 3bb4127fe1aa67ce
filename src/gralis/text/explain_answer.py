"""`text.explain_generation`: which part of a prompt made a model write what it wrote."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from torch import nn

from gralis.checks import one_of
from gralis.errors import bad
from gralis.kernels import Gaussian
from gralis.plans import Plan
from gralis.targets import total
from gralis.text.absence import Absent
from gralis.text.answer import SCORES, Answer, Contrast, answer_of, answered, is_encoder_decoder, paired, prompt_of
from gralis.text.closer_look import drill_budget, lifted, opened
from gralis.text.encoded import TextFeatures
from gralis.text.explain_remote import RemoteQuestion, remote_spans
from gralis.text.generation import Generation
from gralis.text.prompt import Prompt, readable
from gralis.text.reading import Reading, chosen_plan, require_room
from gralis.text.remote_model import RemoteModel
from gralis.text.spans import split

__all__ = ["Question", "explain_generation"]

_OWNER = "text.explain_generation"


def explain_generation(
    model: nn.Module | RemoteModel,
    tokenizer: Any,
    prompt: object,
    continuation: str | Sequence[int] | None = None,
    *,
    max_new_tokens: int = 32,
    alternative: str | Sequence[int] | None = None,
    score: str = "logprob",
    features: object = None,
    absent: Absent = "auto",
    kernel: object = Gaussian(0.75),
    plan: str | Plan = "values",
    budget: int | None = 1024,
    tolerance: float | None = None,
    level: float = 0.95,
    max_seconds: float | None = None,
    seed: int | None = 0,
    batch_size: int | Literal["auto"] = "auto",
    max_memory: int | None = None,
    progress: bool | Callable[[int, int], None] | None = None,
) -> Generation:
    """Sh_i of log p(token t | prompt, earlier tokens), for each feature i of the prompt and each token t of the answer.

    The model writes an answer, or a given one is taken. Each forward with some features of the prompt absent yields the
    scores of all tokens, so that the whole matrix and the answer as a whole come from the same forwards. With the
    default plan the numbers are Shapley values: those of a token sum to the difference between its score with the
    prompt and its score without the features. A plan with rays, such as "shared", gives phi instead; it needs one
    backward per token and point, and the budget counts each.

    Parameters
    ----------
    model : transformers model or RemoteModel
        A causal or an encoder-decoder model with input embeddings, or an API (see `text.remote`).
    tokenizer : transformers tokenizer or None
        A fast tokenizer; None for an API.
    prompt : str, Prompt, or list of dict
        The prompt; a `Prompt` (see `fill`) knows its parts, a list of turns goes through the chat template.
    continuation : str or list of int, optional
        The answer to explain. By default the model writes one, with the most likely token at each place.
    max_new_tokens : int, default=32
        The length of a written answer at most.
    alternative : str or list of int, optional
        Another answer: explain the score of the answer minus that of the alternative ("why Paris and not Lyon"). Rows
        pair the tokens of both answers by their place.
    score : {"logprob", "logit"}, default="logprob"
        What to explain of each token.
    features : str, list or dict, optional
        As in `text.explain`. By default the parts of a `Prompt`, otherwise the passages of the prompt, or its
        sentences, or its words, whichever are several.
    absent : str, int, dict or None, default="auto"
        What an absent feature is, as in `text.explain`.
    kernel : Kernel, default=Gaussian(0.75)
        For plans with rays: how near coalitions count.
    plan : str or Plan, default="values"
        "values" needs forwards only; see above.
    budget : int or None, default=1024
        The forwards at most (gradients, for plans with rays). With 10 features 1024 forwards are all coalitions.
    tolerance : float, optional
        Stop once the half-widths of every row are below this share of its F(x) - F(x').
    level : float, default=0.95
        The level of the intervals that `tolerance` refers to.
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
    Generation
        The matrix, the whole answer, and `drill` for a closer look.
    """
    options = {
        "kernel": kernel,
        "plan": plan,
        "budget": budget,
        "tolerance": tolerance,
        "level": level,
        "max_seconds": max_seconds,
        "seed": seed,
        "batch_size": batch_size,
        "max_memory": max_memory,
        "progress": progress,
    }
    one_of(score, SCORES, "score", _OWNER)
    if isinstance(model, RemoteModel):
        one_of(score, SCORES[:1], "score", f"{_OWNER} for an API")
        return _remote(model, tokenizer, prompt, (continuation, alternative), features, absent, options)
    reading = Reading.of(model, tokenizer, prompt, absent, _OWNER)
    reading = replace(reading, encoded=prompt_of(model, reading.encoded))
    answer = answer_of(reading, continuation, max_new_tokens, "continuation")
    against = None if alternative is None else answer_of(reading, alternative, max_new_tokens, "alternative")
    longest = max(len(each.lead) + len(each.ids) for each in (answer, against or answer))
    if is_encoder_decoder(model):  # the decoder has a window of its own, and begins it with one token
        require_room(model, longest + 1, "answer has")
    else:
        require_room(model, len(reading.encoded.ids) + longest, "prompt and the answer have")
    grouped = reading.with_features(_default_grain(reading.prompt) if features is None else features)
    return Question(reading, answer, against, score, options).explained(grouped)


def _remote(
    model: RemoteModel,
    tokenizer: Any,
    prompt: object,
    answers: tuple[object, object],
    features: object,
    absent: Absent,
    options: Mapping[str, Any],
) -> Generation:
    """The same for an API: features are left out of the prompt, and every prompt is asked for once."""
    text = readable(prompt, tokenizer, _OWNER)
    chosen_plan(True, options["plan"], _OWNER)
    continuations = _texts(model, *answers)
    if not isinstance(absent, Mapping) and absent not in ("auto", "removed", None):
        raise bad("absent", _OWNER, "'removed' or a dict from names of features to texts, for an API", repr(absent))
    spans = remote_spans(text, _default_grain(text) if features is None else features, _OWNER)
    words = text if isinstance(text, str) else text.text
    question = RemoteQuestion(model, words, continuations, absent, options, _OWNER)
    return question.explained(spans, options["budget"])


def _texts(model: RemoteModel, continuation: object, alternative: object) -> tuple[str, ...]:
    """The answer that an API is asked about, and the alternative if there is one."""
    if not isinstance(continuation, str) or not continuation:
        raise bad("continuation", _OWNER, "the answer as a text, for an API", repr(continuation))
    if alternative is None:
        return (continuation,)
    if not isinstance(alternative, str) or not alternative:
        raise bad("alternative", _OWNER, "None or another answer as a text, for an API", repr(alternative))
    if not model.takes_continuation:
        advice = "Write the function as call(prompts, continuation)."
        raise bad(
            "alternative", _OWNER, "None for an API whose call takes the prompts alone", repr(alternative), advice
        )
    return continuation, alternative


@dataclass(frozen=True, eq=False)
class Question:
    """Why this answer: everything but the features, which a closer look changes."""

    reading: Reading
    answer: Answer
    against: Answer | None
    score: str
    options: Mapping[str, Any]

    def explained(self, text: TextFeatures, known: Generation | None = None, budget: int | None = None) -> Generation:
        """The matrix for these features; `known` is a generation with coarser features."""
        targets = [total, *range(len(self._tokens))]
        first = self.options["budget"] if known is None else budget
        options = {**self.options, "target": targets, "budget": first}
        asked = {
            "answer": list(self.answer.ids),
            "alternative": None if self.against is None else list(self.against.ids),
            "leads": [[] if each is None else list(each.lead) for each in (self.answer, self.against)],
            "score": self.score,
        }
        before = []
        if known is not None:
            coarse = self.reading.encoded.with_spans(known.spans, "parts")
            before = lifted([known.total, *known.each], coarse, text)
        explanations, _ = self.reading.explained(self.scores(text), text, options, asked, before)
        what = self.score if self.against is None else f"{self.score} against {self.against.text.strip()!r}"
        prompt, answer = text.encoded.text, self.answer.text
        return Generation.of(explanations, self._tokens, prompt, text.spans, answer, what, self._deeper)

    def scores(self, text: TextFeatures) -> Any:
        """The scores of the answer's tokens as a function of the presence of the features."""
        ours = answered(self.reading, text, self.answer, self.score)
        return ours if self.against is None else Contrast(ours, answered(self.reading, text, self.against, self.score))

    @property
    def _tokens(self) -> list[str]:
        return paired([each.tokens for each in (self.answer, self.against) if each is not None])

    def _deeper(
        self, known: Generation, feature: int | str, into: str | Sequence[object] | None, budget: int | None
    ) -> Generation:
        """The same answer with one feature split; by default for a third of the first budget."""
        encoded = self.reading.encoded
        spans = opened(known.text, known.spans, feature, into, encoded.token_spans(), self.reading.absent)
        afforded = drill_budget(self.options["budget"], budget, len(spans))
        return self.explained(encoded.with_spans(spans, "parts"), known, afforded)


def _default_grain(prompt: Prompt | str) -> str | None:
    """The parts of a Prompt; otherwise the coarsest parts of which there are several."""
    if isinstance(prompt, Prompt):
        return None
    several = (grain for grain in ("passages", "sentences") if len(split(prompt, grain)) > 1)
    return next(several, "words")
