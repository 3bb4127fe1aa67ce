"""A model behind an API: prompts go out, log-probabilities come back; no call is paid twice, failures are retried."""

from __future__ import annotations

import hashlib
import inspect
import json
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gralis.checks import as_path, non_negative, whole
from gralis.errors import BudgetError, GralisError, ModelError, bad

__all__ = ["RemoteModel", "Reply", "remote"]

_ROUNDING = 1e-3  # a log-probability in half precision may be a little above 0


@dataclass(frozen=True)
class Reply:
    """What the API said of one prompt: the log-probability of every token of the answer, and the tokens if named."""

    logprobs: tuple[float, ...]
    tokens: tuple[str, ...] = ()


def remote(
    call: Callable[..., Any],
    *,
    cache: str | Path | None = None,
    prompts_per_call: int = 1,
    tries: int = 5,
    wait: float = 1.0,
    max_calls: int | None = None,
    price: float = 0.0,
    sleep: Callable[[float], None] = time.sleep,
) -> RemoteModel:
    """A model from a function that asks an API for log-probabilities; `text.explain_generation` takes it as its model.

    Only coalition values exist, so the numbers are Shapley values. Absent features are left out of the prompt, or
    replaced by other texts.

    Parameters
    ----------
    call : callable
        Called as `call(prompts, continuation)`, or as `call(prompts)` if it takes one argument, with a list of prompts.
        It returns for each prompt the log-probability of every token of the continuation: a list of numbers, a list of
        (token, number) pairs, a dict with "logprobs" and maybe "tokens", or one number for the whole continuation.
    cache : str or Path, optional
        A file in which every reply is kept as soon as it arrives, under its prompt and continuation; each API needs a
        file of its own. A later run with the same file pays for new prompts only, also after a crash. By default
        replies are kept in memory.
    prompts_per_call : int, default=1
        The number of prompts in one call.
    tries : int, default=5
        How often a call that fails is tried before the run ends with an error; what was paid for is kept.
    wait : float, default=1.0
        The seconds before the second try; each further wait is twice as long.
    max_calls : int, optional
        Refuse a run that may need more new prompts than this, before anything is paid for. The error says how many they
        are and what they cost, so 0 asks for the estimate alone. A prompt counts once for each continuation.
    price : float, default=0.0
        What one prompt costs, in any currency, for the estimate.
    sleep : callable, default=time.sleep
        How to wait.

    Returns
    -------
    RemoteModel

    Examples
    --------
    >>> model = remote(lambda prompts: [[-0.1 * len(prompt)] for prompt in prompts])
    >>> [reply.logprobs for reply in model.ask(["Hello"], " you")]
    [(-0.5,)]
    """
    owner = "text.remote"
    if isinstance(call, type) or not callable(call):
        raise bad("call", owner, "a function from prompts to log-probabilities", f"a {type(call).__name__}")
    if not callable(sleep):
        raise bad("sleep", owner, "a function that waits for a number of seconds", repr(sleep))
    return RemoteModel(
        call,
        as_path(cache, owner, "cache") if cache is not None else None,
        whole(prompts_per_call, "prompts_per_call", 1, owner),
        whole(tries, "tries", 1, owner),
        non_negative(wait, "wait", owner),
        None if max_calls is None else whole(max_calls, "max_calls", 0, owner),
        non_negative(price, "price", owner),
        sleep,
    )


@dataclass(eq=False)
class RemoteModel:
    """An API with its cache; made by `gralis.text.remote`.

    Attributes
    ----------
    call : callable
        The function that asks the API.
    cache : Path or None
        The file with the replies.
    prompts_per_call, tries, wait, max_calls, price, sleep
        See `gralis.text.remote`.
    n_calls : int
        How often the API was asked so far, failures included.
    """

    call: Callable[..., Any]
    cache: Path | None = None
    prompts_per_call: int = 1
    tries: int = 5
    wait: float = 1.0
    max_calls: int | None = None
    price: float = 0.0
    sleep: Callable[[float], None] = time.sleep
    n_calls: int = 0
    _known: dict[str, Reply] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if self.cache is not None:
            self._known.update(_opened(self.cache))

    @property
    def takes_continuation(self) -> bool:
        """Whether the function is told which continuation is asked about."""
        return _n_arguments(self.call) == 2

    def ask(self, prompts: Sequence[str], continuation: str) -> list[Reply]:
        """The reply to every prompt; those that are known are not asked for again.

        Parameters
        ----------
        prompts : sequence of str
            The prompts.
        continuation : str
            The answer whose log-probability is asked for.

        Returns
        -------
        list of Reply
        """
        fresh = self.unknown(prompts, continuation)
        for start in range(0, len(fresh), self.prompts_per_call):
            part = fresh[start : start + self.prompts_per_call]
            wrong = None
            for prompt, entry in zip(part, self._tried(part, continuation), strict=True):
                try:
                    self._keep(prompt, continuation, _reply(entry))
                except ModelError as error:  # the other replies of this call are paid for, too
                    wrong = wrong or error
            if wrong is not None:
                raise wrong
        return [self._known[_key(prompt, continuation)] for prompt in prompts]

    def unknown(self, prompts: Sequence[str], continuation: str) -> list[str]:
        """The prompts that would have to be paid for, each once."""
        return [p for p in dict.fromkeys(prompts) if _key(p, continuation) not in self._known]

    def check(self, prompts: Sequence[str], *continuations: str) -> None:
        """Refuse a run that may need more than `max_calls` new prompts."""
        n_new = sum(len(self.unknown(prompts, each)) for each in continuations)
        if self.max_calls is not None and n_new > self.max_calls:
            cost = f", which costs {n_new * self.price:.4g}" if self.price else ""
            raise BudgetError(
                f"This run asks the API for {n_new} new prompts{cost}, and max_calls is {self.max_calls}; nothing was "
                f"asked yet. Take a smaller budget or coarser features, or allow more calls."
            )

    def _tried(self, prompts: list[str], continuation: str) -> Sequence[Any]:
        """One entry per prompt, as the API returned them."""
        for number in range(1, self.tries + 1):
            try:
                self.n_calls += 1
                return _entries(prompts, self._called(prompts, continuation))
            except GralisError:
                raise
            except Exception as error:
                if number == self.tries:
                    where = "in memory, on this model" if self.cache is None else f"in {self.cache}"
                    raise ModelError(
                        f"The API failed {self.tries} times in a row, at last with {type(error).__name__}: {error}; "
                        f"the {len(self._known)} replies paid for are kept {where}; the same call goes on from there."
                    ) from error
                self.sleep(self.wait * 2 ** (number - 1))
        raise AssertionError("unreachable")

    def _called(self, prompts: list[str], continuation: str) -> Any:
        return self.call(prompts, continuation) if self.takes_continuation else self.call(prompts)

    def _keep(self, prompt: str, continuation: str, reply: Reply) -> None:
        key = _key(prompt, continuation)
        self._known[key] = reply
        if self.cache is not None:
            line = json.dumps({"key": key, "logprobs": reply.logprobs, "tokens": reply.tokens})
            try:
                with self.cache.open("a", encoding="utf-8") as stream:
                    stream.write(line + "\n")
            except OSError as error:
                raise GralisError(
                    f"The cache {self.cache} can no longer be written ({error.strerror or error}); the "
                    f"{len(self._known)} replies paid for are kept in memory, on this model."
                ) from error


def _key(prompt: str, continuation: str) -> str:
    return hashlib.sha256(f"{len(prompt)}|{prompt}|{continuation}".encode(errors="surrogatepass")).hexdigest()


def _opened(path: Path) -> dict[str, Reply]:
    """The replies in a file that can be written; a line that a crash cut off is left out, and ended."""
    try:
        with path.open("a+b") as stream:
            stream.seek(0)
            content = stream.read()
            if content and not content.endswith(b"\n"):
                stream.write(b"\n")
    except OSError as error:
        allowed = "a file that can be read and written, in a folder that exists"
        raise bad("cache", "text.remote", allowed, f"{path} ({error.strerror or error})") from None
    known = {}
    for line in content.splitlines():
        try:
            entry = json.loads(line)
            known[str(entry["key"])] = Reply(tuple(map(float, entry["logprobs"])), tuple(map(str, entry["tokens"])))
        except (ValueError, KeyError, TypeError, RecursionError):
            continue
    return known


def _entries(prompts: Sequence[str], returned: Any) -> Sequence[Any]:
    """What the API returned, one entry per prompt."""
    if not isinstance(returned, Sequence) and hasattr(returned, "tolist"):
        returned = returned.tolist()
    if not isinstance(returned, Sequence) or isinstance(returned, str) or len(returned) != len(prompts):
        raise _no_logprobs(returned, f"a list with one entry for each of the {len(prompts)} prompts")
    return returned


def _n_arguments(call: Callable[..., Any]) -> int:
    """How many positional arguments a function must get: one or two."""
    try:
        given = inspect.signature(call).parameters.values()
    except (TypeError, ValueError):
        return 2
    needed = [p for p in given if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.default is p.empty]
    return 1 if len(needed) == 1 and not any(p.kind is p.VAR_POSITIONAL for p in given) else 2


def _reply(entry: Any) -> Reply:
    """One entry of what the API returned, in any of its forms."""
    tokens: tuple[str, ...] = ()
    if isinstance(entry, Mapping):
        tokens = tuple(map(str, entry.get("tokens") or ()))
        entry = entry.get("logprobs")
    if isinstance(entry, int | float) and not isinstance(entry, bool):
        entry = [entry]
    if not isinstance(entry, Sequence) and hasattr(entry, "tolist"):
        entry = entry.tolist()
        entry = entry if isinstance(entry, list) else [entry]
    if not isinstance(entry, Sequence) or isinstance(entry, str) or not len(entry):
        raise _no_logprobs(entry, "numbers for every prompt")
    if all(isinstance(each, Sequence) and not isinstance(each, str) and len(each) == 2 for each in entry):
        tokens, entry = tuple(str(token) for token, _ in entry), [number for _, number in entry]
    try:
        numbers = tuple(float(number) for number in entry)
    except (TypeError, ValueError):
        raise _no_logprobs(entry, "numbers for every prompt") from None
    if not all(map(math.isfinite, numbers)):
        raise _no_logprobs(entry, "finite numbers for every prompt")
    if max(numbers) > _ROUNDING:
        raise _no_logprobs(entry, "logarithms of probabilities, which are at most 0")
    return Reply(numbers, tokens if len(tokens) == len(numbers) else ())


def _no_logprobs(got: object, wanted: str) -> ModelError:
    shown = repr(got)
    return ModelError(
        f"The API returned no log-probabilities: text.remote needs {wanted}, and got "
        f"{shown if len(shown) < 80 else shown[:77] + '...'}; ask the API for log-probabilities of the continuation."
    )
