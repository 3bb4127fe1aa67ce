"""What made a model write its answer: a matrix of tokens and features, the whole answer, and a closer look."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gralis.checks import as_path, one_of, printable
from gralis.errors import GralisError, bad
from gralis.files.archive import from_bytes, to_bytes
from gralis.results.explanation import Explanation
from gralis.results.explanations import Explanations
from gralis.storage.container import write_text
from gralis.storage.packed import BROKEN, has_part, read_parts, write_parts
from gralis.text.closer_look import require_model
from gralis.text.explained_answer import ExplainedAnswer
from gralis.text.prompt import Prompt
from gralis.text.spans import GRAINS, Span, split
from gralis.text.token_matrix import TokenMatrix

__all__ = ["Deeper", "Generation", "is_saved", "load"]

#: Splits a feature of a generation: (the generation, feature, into, budget).
Deeper = Callable[["Generation", int | str, str | Sequence[object] | None, int | None], "Generation"]


@dataclass(frozen=True, eq=False, repr=False)
class Generation(ExplainedAnswer):
    """How much every feature of a prompt contributed to every token of an answer, and to the answer as a whole.

    `values[t, i]` is the contribution of feature i to the score of token t, its log-probability unless another score
    was asked for. `interval(level)` holds for the whole matrix together. `generation[t]` is the ordinary explanation of
    one token.

    Attributes
    ----------
    tokens : tuple of str
        The tokens of the answer, the rows.
    names : tuple of str
        The features of the prompt, the columns.
    estimates : tuple of Estimate
        The values of every row with their errors.
    text : str
        The prompt.
    spans : tuple of Span
        Where the features stand in the prompt.
    total : Explanation
        The explanation of the whole answer: its score is the sum over the tokens.
    each : Explanations
        The explanations of the tokens.
    answer : str
        The whole answer.
    score : str
        What was explained: "logprob", "logit", or either of them against an alternative.
    """

    _deeper: Deeper | None = None

    @staticmethod
    def of(
        explanations: Sequence[Explanation],
        tokens: Sequence[str],
        text: str,
        spans: Sequence[Span],
        answer: str,
        score: str,
        deeper: Deeper | None = None,
    ) -> Generation:
        """A generation from the explanation of the whole answer and those of its tokens."""
        total, *each = explanations
        return Generation(
            tuple(tokens),
            tuple(total.names),
            tuple(one.estimate for one in each),
            text,
            tuple(spans),
            total,
            Explanations(tuple(each), tuple(tokens)),
            answer,
            score,
            _deeper=deeper,
        )

    def __getitem__(self, token: int) -> Explanation:
        """The explanation of one token, by its place in the answer."""
        return self.each[token]

    def __len__(self) -> int:
        return len(self.tokens)

    def sums(self, grain: str | Prompt = "passages") -> TokenMatrix:
        """The sums of the values over larger parts of the prompt, with errors.

        Parameters
        ----------
        grain : {"words", "sentences", "passages"} or Prompt, default="passages"
            The parts; those of a `Prompt` are what filled its slots, or the turns of a conversation.

        Returns
        -------
        TokenMatrix
            One column per part that contains features.
        """
        if isinstance(grain, Prompt):
            parts = grain.spans
        else:
            one_of(grain, GRAINS[1:], "grain", "sums")
            parts = split(self.text, grain)
        groups = [[i for i, s in enumerate(self.spans) if part.start <= s.start < part.stop] for part in parts]
        for part, group in zip(parts, groups, strict=True):
            if larger := [self.spans[i].name for i in group if self.spans[i].stop > part.stop]:
                raise GralisError(
                    f"The feature {larger[0]!r} is larger than the part {part.name!r}; sum over larger parts, or drill "
                    f"into this feature first."
                )
        kept = [(part.name, group) for part, group in zip(parts, groups, strict=True) if group]
        return self.combined([group for _, group in kept], [name for name, _ in kept])

    def drill(
        self, feature: int | str, into: str | Sequence[object] | None = None, budget: int | None = None
    ) -> Generation:
        """Split one feature into its parts and keep the others whole, at a fraction of the cost.

        Coalition values that are known stay known: those in which the feature is wholly there or wholly absent.

        Parameters
        ----------
        feature : int or str
            The feature, by number or name.
        into : {"sentences", "words", "tokens", "passages"} or list of (start, stop, name), optional
            Its parts; by default sentences, or words if it has one sentence, or tokens if it has one word.
        budget : int, optional
            The forwards at most; by default a third of what this generation may cost.

        Returns
        -------
        Generation
            The same answer, with the parts in the place of the feature.
        """
        require_model(self._deeper)
        assert self._deeper is not None
        return self._deeper(self, feature, into, budget)

    def plot(self, level: float = 0.95, ax: Any = None) -> Any:
        """The matrix as a matplotlib figure: red for, blue against, a dot where the interval excludes zero.

        Parameters
        ----------
        level : float, default=0.95
            The level of the intervals, for the whole matrix together.
        ax : matplotlib Axes, optional
            Where to draw; by default a new figure.

        Returns
        -------
        matplotlib.figure.Figure
        """
        from gralis.text.generation_picture import draw

        return draw(self, level, ax)

    def report(self, path: str | Path, *, title: str | None = None) -> Path:
        """Write one HTML file that needs no network: the answer's tokens to click, the prompt in colour, the matrix.

        Parameters
        ----------
        path : str or Path
            The file to write.
        title : str, optional
            The title of the page.

        Returns
        -------
        Path
            The path that was written.
        """
        from gralis.text.generation_page import page

        return write_text(path, page(self, title))

    def save(self, path: str | Path) -> Path:
        """Write everything but the model to one file; `gralis.text.load` reads it back.

        Parameters
        ----------
        path : str or Path
            The file to write.

        Returns
        -------
        Path
            The path that was written.
        """
        about = {
            "kind": "generation",
            "tokens": self.tokens,
            "text": self.text,
            "spans": [[span.start, span.stop, span.name] for span in self.spans],
            "answer": self.answer,
            "score": self.score,
        }
        parts = {f"{number}.gralis": to_bytes(each) for number, each in enumerate([self.total, *self.each])}
        return write_parts(path, {"generation.json": json.dumps(about).encode(), **parts})

    def _repr_html_(self) -> str:
        from gralis.text.generation_page import snippet

        return snippet(self)

    def __repr__(self) -> str:
        total, cost = self.total, self.cost
        what = f"{len(self.tokens)} tokens from {len(self.names)} features, {self.score}, {self.method}"
        spent = f"{cost.n_forwards} forwards" + (f", {cost.n_gradients} gradients" if cost.n_gradients else "")
        ends = f"{total.f_x:.4g} with the whole prompt, {total.f_baseline:.4g} without its features"
        lines = [f"GRALIS generation: {what}", f"answer: {self.answer.strip()!r}", f"score: {ends}; {spent}", ""]
        whole = TokenMatrix(("whole answer", *self.tokens), self.names, (total.estimate, *self.estimates))
        lines += whole._table()
        return "\n".join([*lines, *(f"doubt: {sentence}" for sentence in self.doubts)])


def is_saved(path: str | Path) -> bool:
    """Whether a file is one that `Generation.save` wrote, by the names of its parts."""
    return has_part(as_path(path, "load"), "generation.json")


def load(path: str | Path) -> Generation:
    """The generation in a file, as it was saved, without the model.

    Parameters
    ----------
    path : str or Path
        A file that `Generation.save` wrote.

    Returns
    -------
    Generation
    """
    path = as_path(path, "text.load")
    allowed = "a file that Generation.save wrote"
    if not path.is_file():  # a pipe would never end
        raise bad("path", "text.load", allowed, f"{path} (there is no such file)")
    try:
        parts = read_parts(path)
        about = _whole(json.loads(parts["generation.json"]))
        explanations = [from_bytes(parts[f"{number}.gralis"]) for number in range(len(about["tokens"]) + 1)]
        spans = [Span(start, stop, printable(name)) for start, stop, name in about["spans"]]
        if any(each.n_features != len(spans) for each in explanations):
            raise ValueError("its explanations have another number of features than its prompt has spans")
    except (*BROKEN, LookupError, RecursionError, TypeError) as error:
        advice = "A file of Explanation.save is read by gralis.load."
        raise bad("path", "text.load", allowed, f"{path} ({error})", advice) from error
    score = printable(about["score"])
    return Generation.of(explanations, about["tokens"], about["text"], spans, about["answer"], score)


def _whole(about: Any) -> dict[str, Any]:
    """What a file says beside the numbers, if it can be that: a file from a stranger may hold anything."""
    for name in ("text", "answer", "score"):
        if not isinstance(about[name], str):
            raise ValueError(f"{name} is no text")
    if not isinstance(about["tokens"], list) or not all(isinstance(token, str) for token in about["tokens"]):
        raise ValueError("its tokens are no texts")
    if not about["tokens"]:
        raise ValueError("it has no tokens")
    for start, stop, name in about["spans"]:
        if type(start) is not int or type(stop) is not int or not isinstance(name, str):
            raise ValueError("a span is not two numbers and a name")
        if not 0 <= start <= stop <= len(about["text"]):
            raise ValueError(f"the span {start} to {stop} lies outside the prompt")
    return dict(about)
