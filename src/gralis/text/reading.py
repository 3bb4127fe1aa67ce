"""What both doors of `gralis.text` share: a text is read into tokens and features, and one run explains its targets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from gralis.api.explain import prepare
from gralis.checks import is_whole
from gralis.errors import GralisError, bad
from gralis.ledger import Ledger
from gralis.models.token_inputs import embedding_of, first_position
from gralis.plans import Plan
from gralis.problem import Problem
from gralis.results.explanation import Explanation
from gralis.text.absence import Absent, absence_in_words, is_values_only
from gralis.text.encoded import Encoded, TextFeatures, encode, spans_for
from gralis.text.prompt import Prompt, readable

__all__ = ["Reading", "chosen_plan", "require_room", "room"]

_UNLIMITED = ("t5", "mt5", "umt5", "longt5")  # relative positions know no end


@dataclass(frozen=True, eq=False)
class Reading:
    """A model with input embeddings, its tokenizer, and one text as tokens."""

    model: nn.Module
    tokenizer: Any
    prompt: Prompt | str
    encoded: Encoded
    absent: Absent
    owner: str

    @staticmethod
    def of(model: nn.Module, tokenizer: Any, text: object, absent: Absent, owner: str) -> Reading:
        """Read the text; a model without embeddings, an empty text and one beyond the context window are refused."""
        embedding_of(model, owner)
        absent = int(absent) if is_whole(absent) else absent  # type: ignore[arg-type]
        prompt = readable(text, tokenizer, owner)
        encoded = encode(tokenizer, prompt if isinstance(prompt, str) else prompt.text, owner)
        require_room(model, len(encoded.ids), "prompt has" if "generation" in owner else "text has")
        return Reading(model, tokenizer, prompt, encoded, absent, owner)

    def with_features(self, features: object) -> TextFeatures:
        """The features argument of the user as spans over the tokens."""
        return spans_for(self.encoded, self.prompt, features, self.owner)

    def explained(
        self,
        module: Any,
        text: TextFeatures,
        options: Mapping[str, Any],
        asked: Mapping[str, Any],
        known: Sequence[Ledger] = (),
    ) -> tuple[tuple[Explanation, ...], Problem]:
        """The explanations of the targets in `options`, and the problem. `asked` is what `text.replay` needs besides.

        `known` are coalition values that need not be evaluated again, one ledger per target.
        """
        plan = chosen_plan(is_values_only(module), options["plan"], self.owner)
        point = {"features": text.features(), "dtype": torch.float32, "plan": plan}
        run = prepare(module, module.scale, {**options, **point}, self.owner)
        if len(known) and run.plan.counts_forwards:
            run.know(known)
        about = {
            "baseline": absence_in_words(self.tokenizer, self.absent),
            "text": {"absent": _plain(self.absent), **asked},
        }
        return tuple(_noted(each, about) for each in run.results()), run.problem


def _noted(explanation: Explanation, about: Mapping[str, Any]) -> Explanation:
    """The explanation with what was read and what an absent word was; `extend` keeps it."""
    go_on = explanation._continue

    def further(before: Explanation, budget: int) -> Explanation:
        assert go_on is not None
        return _noted(go_on(before, budget), about)

    kept = {**explanation.provenance, **about}
    return replace(explanation, provenance=kept, _continue=None if go_on is None else further)


def chosen_plan(values_only: bool, plan: str | Plan | None, owner: str) -> str | Plan:
    """The plan; where only coalition values exist, a plan with rays is refused."""
    if not values_only:
        return "shared" if plan is None else plan
    chosen = "values" if plan is None else plan
    if getattr(chosen, "name", chosen) not in ("values", "endpoint"):
        advice = "Removed text has no embeddings between absent and present; put a token in its place to have rays."
        raise bad("plan", owner, "'values' or 'endpoint' where absent features are removed", repr(plan), advice)
    return chosen


def room(model: nn.Module) -> int | None:
    """How many tokens the context window of the model holds; None if it has no end."""
    config = getattr(model, "config", None)
    limits = [getattr(config, name, None) for name in ("max_position_embeddings", "n_positions")]
    known = [limit for limit in limits if isinstance(limit, int) and limit > 0]
    if getattr(config, "model_type", "") in _UNLIMITED or not known:
        return None
    return known[0] - first_position(model)


def require_room(model: nn.Module, n_tokens: int, what: str) -> None:
    """A text beyond the context window is refused."""
    most = room(model)
    if most is not None and n_tokens > most:
        raise GralisError(
            f"The {what} {n_tokens} tokens, and the context window of this {type(model).__name__} holds {most}; "
            f"shorten the text, or leave out passages."
        )


def _plain(absent: Absent) -> Any:
    return dict(absent) if isinstance(absent, Mapping) else absent
