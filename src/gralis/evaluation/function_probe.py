"""Is the model a function of its input? F(x) is evaluated again, in a batch with other rows, before a run.

A model with dropout left on, with sampling inside, or with batch normalisation that has no running statistics gives
another F(x) each time or in each batch. No interval accounts for that, so the result must say so.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch

from gralis.arrays import Array
from gralis.evaluation.calls import ModelCalls
from gralis.evaluation.point_sequences import CoalitionPoints, ProblemPoints
from gralis.models.torch_module import TorchModel

__all__ = ["PROBE_FORWARDS", "ModelDoubts", "model_doubts"]

#: Forwards that the probe needs for each input; twice as many if F(x) has changed.
PROBE_FORWARDS = 6


@dataclass(frozen=True, eq=False)
class ModelDoubts:
    """What asking for F(x) again has shown.

    Attributes
    ----------
    sentences : sequence of tuple of str
        Why the model is not a function of its input, for every question; an empty tuple if it seems to be one.
    noise : array of shape (n_questions,)
        The difference between the smallest and the largest answer to a question that is doubted; 0 for the others.
    """

    sentences: Sequence[tuple[str, ...]]
    noise: Array

    @classmethod
    def none(cls, n_questions: int) -> ModelDoubts:
        """No doubts about any question."""
        return cls(((),) * n_questions, np.zeros(n_questions))


def model_doubts(
    calls: ModelCalls, space: ProblemPoints, dtypes: Sequence[torch.dtype], f_x: Array, f_baselines: Array
) -> ModelDoubts:
    """Why the model is not a function of its input, and by how much its answers differ.

    F(x) is evaluated several times more, in one batch of another size with x' among its rows. If that changes F(x) by
    more than rounding, the same batch is evaluated once more: a model that answers otherwise is random, and one that
    answers the same depends on the rows beside x. The generators of random numbers are left as they were.

    Parameters
    ----------
    calls : ModelCalls
        The calls of the model.
    space : ProblemPoints
        The inputs and their baselines.
    dtypes : sequence of torch.dtype
        The types in which the inputs are evaluated.
    f_x : array of shape (n_questions,)
        F(x), evaluated beside the baselines.
    f_baselines : array of shape (n_questions, n_baselines)
        F(x') of every baseline.

    Returns
    -------
    ModelDoubts
        A sentence and a size for every question that is doubted.
    """
    questions = space.questions
    first_pairs = np.arange(questions.n_pairs)[:: questions.n_baselines]
    n_inputs, n_features = len(first_pairs), space.n_features
    pair = np.concatenate([first_pairs] * (PROBE_FORWARDS - 1) + [first_pairs[::-1]])
    masks = np.ones((len(pair), n_features), dtype=bool)
    masks[n_inputs : 2 * n_inputs] = False
    points = CoalitionPoints(space, pair, masks)

    def ask_again() -> Array:
        """F(x) of every question, several times, (PROBE_FORWARDS - 1, n_questions)."""
        values = calls.values(points).reshape(PROBE_FORWARDS, n_inputs, -1)
        values[-1] = values[-1, ::-1]
        return np.delete(values, 1, axis=0).reshape(PROBE_FORWARDS - 1, -1)

    scale = np.maximum(np.abs(f_x), np.abs(f_baselines).max(1))
    allowed = np.sqrt(_rounding(calls, dtypes)) * scale
    with _same_random_numbers_afterwards(getattr(calls.model.model, "device", None)):
        again = ask_again()
        changed = np.abs(again - f_x).max(0) > allowed
        if not changed.any():
            return ModelDoubts.none(len(f_x))
        repeated = ask_again()
    gap, random_gap = np.ptp([f_x, *again, *repeated], axis=0), np.abs(again - repeated).max(0)
    delta = f_x - f_baselines.mean(1)
    doubts: list[tuple[str, ...]] = []
    for k in range(len(f_x)):
        if not changed[k]:
            doubts.append(())
        elif random_gap[k] > allowed[k]:
            answers = np.array([f_x[k], *again[:, k], *repeated[:, k]])
            doubts.append((_random_sentence(answers, float(delta[k])),))
        else:
            other = again[np.abs(again[:, k] - f_x[k]).argmax(), k]
            doubts.append((_batch_sentence(float(f_x[k]), float(other), float(delta[k])),))
    return ModelDoubts(tuple(doubts), np.where(changed, gap, 0.0))


def _rounding(calls: ModelCalls, dtypes: Sequence[torch.dtype]) -> float:
    """The relative rounding of the coarsest type that takes part. A model outside torch may compute in float32."""
    eps = max(calls.rounding, *(torch.finfo(dtype).eps for dtype in dtypes))
    return eps if isinstance(calls.model.model, TorchModel) else max(eps, torch.finfo(torch.float32).eps)


def _random_sentence(answers: Array, delta: float) -> str:
    gap = float(np.ptp(answers))
    return (
        f"The model is random: asked {len(answers)} times for F(x), it answered between {answers.min():.5g} and "
        f"{answers.max():.5g}, a difference of {gap:.2g}{_compared(gap, delta)}. The intervals are wider by this "
        f"difference, which may not be enough: dropout or sampling is active inside the model, so call model.eval(), "
        f"pass training=self.training to torch.nn.functional.dropout, or set a fixed seed at the start of every call."
    )


def _batch_sentence(alone: float, other: float, delta: float) -> str:
    gap = abs(other - alone)
    return (
        f"F(x) depends on the other rows of its batch: it was {alone:.5g} in one batch and {other:.5g} in another, a "
        f"difference of {gap:.2g}{_compared(gap, delta)}. The intervals are wider by the largest such difference, "
        f"which may not be enough: batch normalisation without running statistics or another operation across rows "
        f"does it, so use running statistics (track_running_stats=True and model.eval()), or batch_size=1 if the model "
        f"accepts single rows."
    )


def _compared(gap: float, delta: float) -> str:
    return f", which is {gap / abs(delta):.2g} times |F(x) - F(x')|" if delta else ""


@contextmanager
def _same_random_numbers_afterwards(device: torch.device | None) -> Iterator[None]:
    """Restore the global generators of torch, NumPy and Python, so that the probe changes no later random number."""
    python, numpy = random.getstate(), np.random.get_state()  # noqa: NPY002
    with torch.random.fork_rng(devices=[device] if device is not None and device.type == "cuda" else []):
        try:
            yield
        finally:
            np.random.set_state(numpy)  # noqa: NPY002
            random.setstate(python)
