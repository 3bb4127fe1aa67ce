"""Targets: outputs -> (rows,), or one sentence that names the choices."""

from __future__ import annotations

import pickle
from collections import namedtuple
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from gralis import targets
from gralis.errors import GralisError

LOGITS = torch.tensor([[1.0, -2.0, 0.5], [3.0, 3.5, -1.0]], dtype=torch.float64)


def probabilities(logits: torch.Tensor) -> torch.Tensor:
    """Softmax by its definition."""
    powers = torch.tensor([[np.exp(z) for z in row] for row in logits.tolist()], dtype=torch.float64)
    return powers / powers.sum(dim=1, keepdim=True)


def test_logit_is_the_column():
    assert torch.equal(targets.logit(2)(LOGITS), torch.tensor([0.5, -1.0], dtype=torch.float64))
    assert torch.equal(targets.logit(-1)(LOGITS), targets.logit(2)(LOGITS))


@pytest.mark.parametrize("k", [0, 1, 2, -1])
def test_probability_and_log_odds_follow_the_definition(k):
    p = probabilities(LOGITS)[:, k]
    torch.testing.assert_close(targets.probability(k)(LOGITS), p)
    torch.testing.assert_close(targets.log_odds(k)(LOGITS), torch.log(p / (1 - p)))


def test_log_odds_does_not_saturate():
    logits = torch.tensor([[90.0, 0.0], [-500.0, 500.0]])  # p rounds to 1 and to 0 in float32
    assert torch.equal(targets.log_odds(0)(logits), torch.tensor([90.0, -1000.0]))


def test_margin_against_the_best_other_or_a_given_class():
    assert torch.equal(targets.margin(0)(LOGITS), torch.tensor([0.5, -0.5], dtype=torch.float64))
    assert torch.equal(targets.margin(0, against=1)(LOGITS), torch.tensor([3.0, -0.5], dtype=torch.float64))
    assert torch.equal(targets.margin(0, against=-1)(LOGITS), torch.tensor([0.5, 4.0], dtype=torch.float64))


@pytest.mark.parametrize("make", [targets.logit, targets.probability, targets.log_odds, targets.margin])
def test_readouts_are_differentiable_picklable_and_readable(make):
    readout = make(1)
    assert torch.autograd.gradcheck(readout, (LOGITS.clone().requires_grad_(),))
    assert repr(readout) == f"{make.__name__}(1)" == targets.describe(readout)
    assert pickle.loads(pickle.dumps(readout)) == readout


def test_readouts_take_the_logits_of_an_output_object():
    assert torch.equal(targets.logit(1)(SimpleNamespace(logits=LOGITS)), LOGITS[:, 1])


@pytest.mark.parametrize(
    ("readout", "outputs", "says"),
    [
        (targets.logit(3), LOGITS, r"logit\(3\) is out of range: the model returns 3 outputs per row, 0..2"),
        (targets.margin(0, against=-4), LOGITS, "out of range"),
        (targets.margin(2, against=-1), LOGITS, "compares class 2 with itself"),
        (targets.logit(0), LOGITS[:, 0], r"needs outputs of shape \(rows, classes\). Got \(rows\)"),
        (targets.probability(0), LOGITS[:, :1], "at least two classes"),
        (targets.log_odds(0), LOGITS[:, :1], "at least two classes"),
        (targets.margin(0), LOGITS[:, :1], "at least two classes"),
    ],
)
def test_readouts_refuse_with_a_sentence(readout, outputs, says):
    with pytest.raises(GralisError, match=says):
        readout(outputs)


@pytest.mark.parametrize("k", [True, 1.0, "cat", None])
def test_a_class_is_an_int(k):
    with pytest.raises(GralisError, match="'k' parameter of logit must be an int"):
        targets.logit(k)


def test_select_none_takes_one_number_per_row():
    values = torch.tensor([1.0, 2.0])
    assert torch.equal(targets.select(values, None), values)
    assert torch.equal(targets.select(values[:, None], None), values)
    assert torch.equal(targets.select(SimpleNamespace(logits=values), None), values)


@pytest.mark.parametrize("target", [1, -2, np.int64(1), torch.tensor(1), (1,), lambda outputs: outputs[:, 1]])
def test_select_a_class(target):
    assert torch.equal(targets.select(LOGITS, target), torch.tensor([-2.0, 3.5], dtype=torch.float64))


def test_select_a_cell_of_a_map():
    maps = torch.arange(2 * 3 * 4 * 5.0).reshape(2, 3, 4, 5)
    assert targets.select(maps, (2, 3, -1)).tolist() == [59.0, 119.0]
    assert targets.select(maps, lambda z: z[:, 2].mean(dim=(1, 2))).tolist() == [49.5, 109.5]


def test_select_int_takes_the_logits_of_an_output_object():
    both = namedtuple("Both", ["loss", "logits"])
    assert torch.equal(targets.select(both(None, LOGITS), 1), LOGITS[:, 1])


def test_a_callable_gets_exactly_what_the_model_returned():
    outputs = {"a": LOGITS, "b": None}
    assert torch.equal(
        targets.select(outputs, lambda given: given["a"][:, 0] if given is outputs else None), LOGITS[:, 0]
    )


def test_select_none_on_a_classifier_names_the_choices():
    with pytest.raises(GralisError) as caught:
        targets.select(torch.zeros(2, 1000), None)
    assert str(caught.value) == (
        "The model returns 1000 outputs per row; choose one with target=k (0..999), a tuple, "
        "or a function from gralis.targets."
    )


@pytest.mark.parametrize(
    ("outputs", "target", "says"),
    [
        (torch.zeros(2, 3, 4, 5), None, r"shape \(rows, 3, 4, 5\); choose one with a tuple of 3 indices"),
        (torch.zeros(2, 3, 4, 5), 1, "use a tuple of 3 indices, or a function"),
        (torch.zeros(2, 3, 4), (1,), r"target=\(1,\) has 1 indices, but outputs of shape \(rows, 3, 4\) need 2"),
        (torch.zeros(2, 3, 4), (1, 4), r"target=\(1, 4\) is out of range: the model returns 4 outputs"),
        (torch.zeros(2, 3), 3, "target=3 is out of range: the model returns 3 outputs per row, 0..2"),
        (torch.zeros(2, 3), -4, "target=-4 is out of range"),
        (torch.zeros(2), 0, "one number per row, so target=0 has no choice; use target=None"),
        (torch.tensor(1.0), None, "a single number for the whole batch"),
        ((torch.zeros(2), None), 1, "returned a tuple of 2, where target=1 needs a tensor; give a function"),
        ([torch.zeros(2)], None, "returned a list of 1"),
        ({"out": torch.zeros(2, 3)}, 1, r"a dict with keys 'out'.*lambda outputs: outputs\['out'\]"),
        (SimpleNamespace(logits="none"), 1, "returned a SimpleNamespace"),
        (np.zeros(2), None, "returned a ndarray.*gralis.models.blackbox"),
        (torch.zeros(2, 3), "cat", "'target' parameter of explain must be None, an int, a tuple of ints, or a fun"),
        (torch.zeros(2, 3), True, "Got True instead"),
        (torch.zeros(2, 3), (), "'target' parameter of explain"),
        (torch.zeros(2, 3), [1], "'target' parameter of explain"),
        (
            torch.zeros(2, 3),
            lambda z: z,
            r"must return a tensor \(2,\) from outputs of shape \(2, 3\). Got shape \(2, 3\)",
        ),
        (torch.zeros(2, 3), lambda z: z.sum(), r"Got shape \(\) instead"),
        (torch.zeros(2, 3), lambda z: z[0], r"Got shape \(3,\) instead"),
        (torch.zeros(2, 3), lambda z: 1.0, "Got a float instead"),
        ((torch.zeros(2, 3),), lambda z: z[0], r"must return a tensor \(rows,\) from a tuple of 1 outputs"),
    ],
)
def test_select_refuses_with_a_sentence(outputs, target, says):
    with pytest.raises(GralisError, match=says):
        targets.select(outputs, target)


def test_the_owner_is_named():
    with pytest.raises(GralisError, match="of cost must be"):
        targets.select(LOGITS, "cat", owner="cost")


def test_describe_names_a_function():
    def area(outputs):
        return outputs.sum(dim=1)

    assert targets.describe(area).endswith("area")
