"""Every public function, with one argument that makes no sense: an answer, or one sentence, and never for ever."""

from __future__ import annotations

import contextlib
import signal
import traceback
import warnings
from collections.abc import Iterator

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gralis
from attack import doors
from attack.bounded import bounded_memory, own_folder
from attack.doors import JUNK

__all__ = ["bounded_memory", "own_folder"]  # fixtures

ALL = doors.doors()
SECONDS = 60


@pytest.fixture(scope="module")
def known(tmp_path_factory) -> dict:
    folder = tmp_path_factory.mktemp("doors")
    gralis.explain_many(doors.model, torch.ones(2, 3) * 2, out=folder / "run", budget=40, progress=False)
    return doors.valid(folder)


@contextlib.contextmanager
def in_time() -> Iterator[None]:
    def late(*_: object) -> None:
        raise TimeoutError(f"it took more than {SECONDS} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def check(known: dict, name: str, place: int, junk: list) -> None:
    arguments = doors.arguments(name, ALL[name], known, iter(junk), place)
    with warnings.catch_warnings(), in_time():
        warnings.simplefilter("ignore")
        try:
            found = ALL[name](**arguments)
            repr(found)
        except gralis.GralisError as error:
            assert str(error).strip()  # noqa: PT017
        except Exception as error:
            shown = {key: repr(value)[:80] for key, value in arguments.items() if key not in ("model", "explanation")}
            where = "".join(traceback.format_tb(error.__traceback__)[-1:]).strip()
            pytest.fail(f"{name}({shown}) raised {type(error).__name__}: {error}\n{where}")


CASES = {
    "name": st.sampled_from(sorted(ALL)),
    "place": st.integers(0, 40),
    "junk": st.lists(JUNK, min_size=9, max_size=9),
}
QUIET = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large]


@settings(max_examples=150, deadline=None, suppress_health_check=QUIET)
@given(**CASES)
def test_an_argument_that_makes_no_sense_is_one_sentence(known, name, place, junk) -> None:
    check(known, name, place, junk)


@pytest.mark.slow
@settings(max_examples=12_000, deadline=None, suppress_health_check=QUIET)
@given(**CASES)
def test_twelve_thousand_arguments_that_make_no_sense(known, name, place, junk) -> None:
    check(known, name, place, junk)
