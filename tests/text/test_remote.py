"""text.remote: every prompt is paid once, failures are waited out, and nothing that was paid is lost."""

from __future__ import annotations

import hashlib
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gralis import BudgetError, GralisError, ModelError
from gralis.text import explain_generation, fill, remote

PROMPT = fill("Read: {context} Question: {ask}", {"context": ["red", "blue", "green"], "ask": "which"}, separator=", ")
WORTH = {"red": 3.0, "blue": -1.0, "green": 0.5, "which": 0.25}


class Api:
    """log p = a sum over the words of the prompt, with one interaction; counts its calls and fails when told to."""

    def __init__(self, fails: Any = lambda number: False) -> None:
        self.prompts: list[str] = []
        self.fails = fails
        self.n_calls = 0

    def __call__(self, prompts: list[str], continuation: str) -> list[list[tuple[str, float]]]:
        self.n_calls += 1
        if self.fails(self.n_calls):
            raise TimeoutError("busy")
        assert continuation == " yes sir"
        self.prompts += prompts
        first = [sum(v for w, v in WORTH.items() if w in prompt) - 9 for prompt in prompts]
        both = [-2.0 * ("red" in prompt and "blue" in prompt) for prompt in prompts]
        return [[("yes", a), (" sir", b)] for a, b in zip(first, both, strict=True)]


def test_the_values_are_shapley_values_of_the_prompts_and_each_prompt_is_asked_once() -> None:
    api = Api()
    g = explain_generation(remote(api, prompts_per_call=4), None, PROMPT, " yes sir")
    assert g.names == ("context 1", "context 2", "context 3", "ask")
    assert g.tokens == ("yes", " sir")
    np.testing.assert_allclose(g.values, [[3.0, -1.0, 0.5, 0.25], [-1.0, -1.0, 0.0, 0.0]], atol=1e-12)
    np.testing.assert_allclose(g.total.values, [2.0, -2.0, 0.5, 0.25], atol=1e-12)
    assert len(api.prompts) == len(set(api.prompts)) == 16
    assert "Read: , ,  Question: " in api.prompts
    assert g.exact


def test_a_cache_on_disk_pays_nothing_twice_and_survives_a_crash(tmp_path: Path) -> None:
    file = tmp_path / "replies.jsonl"
    broken = Api(fails=lambda number: number > 7)
    waits: list[float] = []
    with pytest.raises(ModelError, match=r"failed 3 times in a row, at last with TimeoutError: busy; the 7 replies"):
        explain_generation(remote(broken, cache=file, tries=3, sleep=waits.append), None, PROMPT, " yes sir")
    assert waits == [1.0, 2.0]
    with file.open("a") as stream:
        stream.write('{"key": "cut o')  # a crash in the middle of a line
    file.write_text(file.read_text() + "\n")
    mended = Api()
    g = explain_generation(remote(mended, cache=file), None, PROMPT, " yes sir")
    assert len(mended.prompts) == 16 - 7
    assert not set(mended.prompts) & set(broken.prompts)
    third = Api()
    again = explain_generation(remote(third, cache=file), None, PROMPT, " yes sir")
    assert third.n_calls == 0
    np.testing.assert_array_equal(again.values, g.values)


def test_failures_that_pass_are_waited_out() -> None:
    waits: list[float] = []
    api = Api(fails=lambda number: number in (3, 4))
    g = explain_generation(remote(api, wait=0.5, sleep=waits.append), None, PROMPT, " yes sir")
    assert waits == [0.5, 1.0]
    assert g.values[0, 0] == pytest.approx(3.0)


def test_the_cost_is_known_before_anything_is_paid() -> None:
    api = Api()
    with pytest.raises(BudgetError, match=r"asks the API for 16 new prompts, which costs 0\.32, and max_calls is 10"):
        explain_generation(remote(api, max_calls=10, price=0.02), None, PROMPT, " yes sir")
    with pytest.raises(BudgetError, match="nothing was asked yet"):
        explain_generation(remote(api, max_calls=0, price=0.02), None, PROMPT, " yes sir")
    assert api.prompts == []


@pytest.mark.parametrize("limit", [{}, {"tolerance": 0.05}, {"max_seconds": 600.0}])
def test_a_run_asks_for_no_prompt_that_the_estimate_left_out(limit: dict[str, Any], tmp_path: Path) -> None:
    """Whatever the API answers, and whatever ends the run early: the prompts of the estimate suffice."""

    def rough(prompts: list[str]) -> list[list[float]]:
        asked.extend(prompts)
        return [[-1.0 - int(hashlib.sha256(prompt.encode()).hexdigest()[:4], 16) / 2**14] for prompt in prompts]

    asked: list[str] = []
    many = fill("Read: {c} So?", {"c": [f"word{number}" for number in range(14)]})
    options: dict[str, Any] = {"budget": 300, **limit}
    with pytest.raises(BudgetError) as raised:
        explain_generation(remote(rough, max_calls=0), None, many, " yes", **options)
    estimate = int(re.findall(r"for (\d+) new prompts", str(raised.value))[0])
    file = tmp_path / "replies.jsonl"
    explain_generation(remote(rough, cache=file, max_calls=estimate), None, many, " yes", **options)
    assert len(asked) == estimate  # nothing ended this run
    with pytest.raises(BudgetError, match="and max_calls is 5"):
        explain_generation(remote(rough, cache=file, max_calls=5), None, many, " yes", seed=1, **options)
    assert len(asked) == estimate


def test_an_alternative_is_asked_for_and_subtracted() -> None:
    prompts: list[tuple[str, str]] = []

    def api(asked: list[str], continuation: str) -> list[list[tuple[str, float]]]:
        prompts.extend((prompt, continuation) for prompt in asked)
        if continuation == " yes":
            return [[("yes", -1.0 - 2.0 * ("red" in prompt))] for prompt in asked]
        return [[("no", -3.0 - 0.5 * ("blue" in prompt)), (" way", -0.25 * ("red" in prompt))] for prompt in asked]

    g = explain_generation(remote(api), None, PROMPT, " yes", alternative=" no way")
    assert g.tokens == ("yes | no", "– | way")
    assert g.score == "logprob against 'no way'"
    np.testing.assert_allclose(g.values, [[-2.0, 0.5, 0.0, 0.0], [0.25, 0.0, 0.0, 0.0]], atol=1e-12)
    np.testing.assert_allclose(g.total.values, [-1.75, 0.5, 0.0, 0.0], atol=1e-12)
    assert len(prompts) == len(set(prompts)) == 32
    with pytest.raises(BudgetError, match="for 32 new prompts"):
        explain_generation(remote(api, max_calls=0), None, PROMPT, " yes", alternative=" no way")
    with pytest.raises(GralisError, match="None for an API whose call takes the prompts alone"):
        explain_generation(remote(lambda asked: [[-1.0]] * len(asked)), None, PROMPT, " yes", alternative=" no")


def test_a_line_that_a_crash_cut_off_costs_one_prompt_and_no_more(tmp_path: Path) -> None:
    file = tmp_path / "replies.jsonl"
    explain_generation(remote(Api(), cache=file), None, PROMPT, " yes sir")
    file.write_bytes(file.read_bytes()[:-9])
    for expected in (1, 0):
        api = Api()
        explain_generation(remote(api, cache=file), None, PROMPT, " yes sir")
        assert len(api.prompts) == expected


def test_what_was_paid_for_in_the_same_call_is_kept() -> None:
    asked: list[str] = []

    def api(prompts: list[str]) -> list[list[float | None]]:
        asked.extend(prompts)
        return [[None if "red" not in prompt and "green" not in prompt else -1.0] for prompt in prompts]

    model = remote(api, prompts_per_call=8)
    with pytest.raises(ModelError, match="returned no log-probabilities"):
        model.ask(["red", "blue", "green"], " yes")
    assert model.unknown(["red", "blue", "green"], " yes") == ["blue"]


def test_progress_is_that_of_the_run_itself() -> None:
    seen: list[int] = []
    explain_generation(remote(Api()), None, PROMPT, " yes sir", progress=lambda done, of: seen.append(done))
    assert seen == sorted(seen)
    assert len(set(seen)) == len(seen)


def test_drill_asks_only_for_what_is_new() -> None:
    api = Api()
    prompt = fill("Read: {context} Question: {ask}", {"context": ["red and blue", "green"], "ask": "which"})
    coarse = explain_generation(remote(api), None, prompt, " yes sir")
    assert len(api.prompts) == 8
    deep = coarse.drill("context 1", into="words")
    assert [span.of(deep.text) for span in deep.spans[:3]] == ["red", "and", "blue"]
    np.testing.assert_allclose(deep.values[0], [3.0, 0.0, -1.0, 0.5, 0.25], atol=1e-12)
    assert len(api.prompts) == len(set(api.prompts))
    with pytest.raises(GralisError, match="one of 'words', 'sentences', 'passages', or a list of spans"):
        coarse.drill("context 1", into="tokens")
    with pytest.raises(GralisError, match="it is a single word"):
        deep.drill("context 1: red")


def test_replacements_stand_in_the_place_of_absent_features() -> None:
    api = Api()
    g = explain_generation(remote(api), None, PROMPT, " yes sir", features=["red"], absent={"red": "blue"})
    assert g.values[0, 0] == pytest.approx(3.0)  # blue stands there already
    assert any("Read: blue, blue" in prompt for prompt in api.prompts)


@pytest.mark.parametrize(
    ("returned", "sentence"),
    [
        (lambda prompts: None, "returned no log-probabilities"),
        (lambda prompts: ["text"] * len(prompts), "returned no log-probabilities"),
        (lambda prompts: [[None]] * len(prompts), "returned no log-probabilities"),
        (lambda prompts: [[math.nan]] * len(prompts), "finite numbers"),
        (lambda prompts: [{"text": "yes"}] * len(prompts), "ask the API for log-probabilities"),
        (lambda prompts: [[0.9, 0.8]] * len(prompts), "which are at most 0, and got"),
        (lambda prompts: [], "one entry for each of the 1 prompts"),
        (lambda prompts: [[0.0] * (1 + len(prompts[0]) % 2)], "log-probabilities for one prompt"),
    ],
)
def test_an_api_without_log_probabilities_is_one_sentence(returned: Any, sentence: str) -> None:
    with pytest.raises(GralisError, match=sentence):
        explain_generation(remote(returned), None, PROMPT, " yes")


def test_bad_input_is_one_sentence() -> None:
    with pytest.raises(GralisError, match="a function from prompts"):
        remote(3)  # type: ignore[arg-type]
    with pytest.raises(GralisError, match="the answer as a text"):
        explain_generation(remote(Api()), None, PROMPT)
    with pytest.raises(GralisError, match="'removed' or a dict"):
        explain_generation(remote(Api()), None, PROMPT, " yes", absent="pad")
    with pytest.raises(GralisError, match="cover the whole prompt"):
        explain_generation(remote(Api()), None, "red blue", " yes", features="words")
    with pytest.raises(GralisError, match="for an API"):
        explain_generation(remote(Api()), None, PROMPT, " yes", features="tokens")
    with pytest.raises(GralisError, match="at least one word"):
        explain_generation(remote(Api()), None, "", " yes")
    with pytest.raises(GralisError, match="for an API must be one of 'logprob'"):
        explain_generation(remote(Api()), None, PROMPT, " yes", score="logit")
    with pytest.raises(GralisError, match="'values' or 'endpoint' where absent features are removed"):
        explain_generation(remote(Api()), None, PROMPT, " yes", plan="shared")
    with pytest.raises(GralisError, match="another answer as a text, for an API"):
        explain_generation(remote(Api()), None, PROMPT, " yes", alternative=[3])
    with pytest.raises(GralisError, match=r"names of features \(context 1, .* Got 'contekst 1': 'x'"):
        explain_generation(remote(Api()), None, PROMPT, " yes", absent={"contekst 1": "x"})
    with pytest.raises(GralisError, match="a function that waits"):
        remote(Api(), sleep=3)  # type: ignore[arg-type]


def test_a_cache_that_cannot_be_written_is_refused_before_anything_is_paid(tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "nowhere" / "replies.jsonl"):
        with pytest.raises(GralisError, match="a file that can be read and written, in a folder that exists"):
            remote(Api(), cache=place)
    model = remote(Api(), cache=tmp_path / "replies.jsonl")
    (tmp_path / "replies.jsonl").unlink()
    (tmp_path / "replies.jsonl").mkdir()
    with pytest.raises(GralisError, match=r"can no longer be written .*; the 1 replies paid for are kept in memory"):
        model.ask(["red"], " yes sir")
    assert model.unknown(["red"], " yes sir") == []
