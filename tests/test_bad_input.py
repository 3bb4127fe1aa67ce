"""Whatever is wrong with the input, the user gets one GralisError: a sentence that says what is wrong."""

from __future__ import annotations

import math
import re
import warnings
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import nn

import gralis
from gralis import (
    BudgetError,
    Explanation,
    Gaussian,
    GralisError,
    ModelError,
    SizeKernel,
    Uniform,
    baselines,
    features,
    models,
    plans,
    targets,
)

NAN, INF = math.nan, math.inf


def smooth(z: torch.Tensor) -> torch.Tensor:
    return torch.tanh(z.reshape(len(z), -1)).sum(1) ** 2


def classes(z: torch.Tensor) -> torch.Tensor:
    """(rows, 3)"""
    total = z.reshape(len(z), -1).sum(1)
    return torch.stack([total, total**2, torch.tanh(total)], dim=1)


def holed(at: float, value: float) -> Any:
    """A function that is not finite where its first input is above `at`."""
    return lambda z: torch.where(z[:, 0] > at, torch.full_like(z[:, 0], value), z.sum(1))


def x_of(n: int) -> torch.Tensor:
    return torch.linspace(0.5, 1.5, n, dtype=torch.float64)


def at(array: Any, index: Any, value: float) -> Any:
    """The array with one entry replaced."""
    array = array.clone() if isinstance(array, torch.Tensor) else np.array(array)
    array[index] = value
    return array


class Own:
    """A model of the user's own, with something wrong."""

    def __init__(self, values: Any = None, gradients: Any = None) -> None:
        self.values, self.gradients = values, gradients

    def value(self, points: torch.Tensor) -> Any:
        return points.sum(1) if self.values is None else self.values(points)

    def value_and_gradient(self, points: torch.Tensor) -> Any:
        return points.sum(1), (torch.ones_like(points) if self.gradients is None else self.gradients(points))


class Unpaired(Own):
    def value_and_gradient(self, points: torch.Tensor) -> Any:
        return torch.ones_like(points)


LINEAR = nn.Linear(4, 3).double().eval()
BOX = models.blackbox(lambda z: z.sum(1))
GAP = "Label 1 is missing"


#: What explain is given beside (smooth, x_of(4)), and what the sentence must say.
TABLE: dict[str, tuple[dict[str, Any], str]] = {
    # not finite
    "x nan": ({"x": at(x_of(4), 2, NAN)}, r"input x is nan at index 2 \(1 such .*finite"),
    "x inf": ({"x": at(np.ones((2, 3)), (1, 2), -INF)}, r"input x is -inf at index \(1, 2\)"),
    "x nan in a tuple": ({"x": (x_of(2), at(x_of(2), 0, NAN)), "model": lambda a, b: a}, r"x\[1\] is nan at index 0"),
    "x nan in a dict": ({"x": {"age": at(x_of(2), 1, INF)}}, r"x\[age\] is inf at index 1"),
    "baseline nan": ({"baseline": at(x_of(4), 3, NAN)}, r"'baseline'.*finite.*nan in x at index \(3,\)"),
    "baseline nan number": ({"baseline": NAN}, r"'baseline'.*finite.*nan"),
    "baseline inf in a sample": (
        {"baseline": baselines.sample(at(np.zeros((3, 4)), (1, 2), INF))},
        r"'baseline'.*inf in x at index \(2,\) of row 1",
    ),
    "baseline beyond float32": ({"x": torch.ones(4), "baseline": 1e200}, r"'baseline'.*finite.*inf"),
    "output nan": (
        {"model": holed(0.3, NAN)},
        r"output is nan, first at the point a = 1 on the ray of features \[0, 1",
    ),
    "output inf on the way": (
        {
            "model": lambda z: torch.where(z[:, 0].abs() < 0.2, torch.full_like(z[:, 0], INF), z.sum(1)),
            "baseline": -1.0,
        },
        r"output is inf, first at the point a = 0\.\d+ on the ray of features \[0",
    ),
    "gradient nan": (
        {"model": Own(gradients=lambda z: at(torch.ones_like(z), (3, 2), NAN))},
        r"gradient in the direction of feature 2 is nan, first at the point a = 0\.\d+ on the ray of features \[",
    ),
    "gradient inf": (
        {"model": lambda z: z.abs().sqrt().sum(1)},
        r"gradient in the direction of feature \d is (inf|nan)",
    ),
    # shapes
    "baseline shape": ({"baseline": np.zeros(5)}, r"'baseline'.*\(4,\).*\(5,\).*sample"),
    "baseline batch": ({"baseline": np.zeros((2, 4))}, r"'baseline'.*\(4,\).*\(2, 4\)"),
    "baseline leaves": ({"x": (x_of(2), x_of(2)), "baseline": (0.0,) * 3}, r"'baseline'.*2 in all.*3"),
    "baseline keys": ({"x": {"a": x_of(2)}, "baseline": {"b": 0.0}}, r"'baseline'.*\['a'\].*\['b'\]"),
    "baseline dict": ({"baseline": {"b": 0.0}}, r"'baseline'.*dict only when x is one"),
    "sample shape": ({"baseline": baselines.sample(np.zeros((3, 5)))}, r"'X'.*\(N, 4\).*\(3, 5\)"),
    "labels shape": ({"features": np.zeros(3, dtype=int)}, r"'features'.*\(4,\).*\(3,\)"),
    "features shape": ({"features": features.channels((4, 2))}, r"'features'.*\(4,\).*\(4, 2\)"),
    "features leaves": ({"x": (x_of(2), x_of(2)), "features": (np.arange(2),)}, r"'features'.*2 in all.*1"),
    "features keys": ({"x": {"a": x_of(2)}, "features": {"b": [0, 1]}}, r"'features'.*\['a'\].*\['b'\]"),
    "model shape": (
        {"model": LINEAR, "x": x_of(5), "target": 0},
        r"Linear raised RuntimeError on points of shape \(2, 5",
    ),
    "model mixes rows": ({"model": lambda z: z.sum().reshape(1)}, r"returned 1 values for 2 rows"),
    "orders of others": (
        {"plan": plans.permutation(orders=np.array([[0, 1, 2]])), "budget": None},
        r"orders.*3.*4|orders.*4.*3",
    ),
    # labels
    "labels empty": ({"features": np.zeros((0,), dtype=int)}, r"'features'.*no labels"),
    "labels gap": ({"features": [0, 2, 2, 3]}, rf"'features'.*{GAP}.*relabel=True"),
    "labels from one": ({"features": [1, 2, 2, 3]}, r"'features'.*Label 0 is missing"),
    "labels negative": ({"features": [0, -1, 1, 2]}, r"'features'.*>= 0.*-1 at index \(1,\)"),
    "labels float": ({"features": [0.0, 1.0, 2.0, 3.0]}, r"'features'.*integers.*float64"),
    "labels text": ({"features": ["a", "b", "c", "d"]}, r"'features'.*integers"),
    "features text": ({"features": "slic"}, r"'features'.*gralis\.features.*'slic'"),
    # nothing to explain
    "x is the baseline": ({"baseline": x_of(4)}, r"x equals the baseline everywhere"),
    "too far": ({"x": x_of(4) * 1e200}, r"so far from the baseline"),
    "does not fit": ({"x": x_of(4) * 1e5, "model": nn.Linear(4, 1).half().eval()}, r"does not fit into float16"),
    # x
    "x picture of bytes": ({"x": np.ones((4, 4), dtype=np.uint8)}, r"'x'.*picture.*uint8.*x.float\(\)"),
    "x integer, baseline between": ({"x": np.array([1, 2]), "baseline": 0.5}, r"'baseline'.*int64.*0.5.*x.float\(\)"),
    "x complex": ({"x": torch.ones(3, dtype=torch.complex64)}, r"'x'.*floating point.*complex64"),
    "x one picture of bytes": (
        {"x": (x_of(2), torch.ones(2, 2, dtype=torch.uint8)), "model": lambda a, b: a},
        r"'x'.*picture.*uint8 of shape \(2, 2\)",
    ),
    "x float8": ({"x": torch.ones(3).to(torch.float8_e4m3fn)}, r"'x'.*float32.*float8_e4m3fn"),
    "x empty tuple": ({"x": ()}, r"'x'.*non-empty tuple.*\(\)"),
    "x empty dict": ({"x": {}}, r"'x'.*non-empty.*\{\}"),
    "x empty": ({"x": np.zeros((0, 3))}, r"'x'.*at least one number.*\(0, 3\)"),
    "x one empty": ({"x": (x_of(2), x_of(0)), "model": lambda a, b: a}, r"'x'.*\(0,\)"),
    "x text": ({"x": "a cat"}, r"'x'.*tensor, an array.*a str"),
    "x None": ({"x": None}, r"'x'.*tensor, an array.*NoneType"),
    "x ragged": ({"x": [[1.0], [1.0, 2.0]]}, r"'x'.*a list"),
    "x objects": ({"x": np.array([object()])}, r"'x'.*a ndarray"),
    "x keys": ({"x": {0: x_of(2)}}, r"'x'.*names of the model's arguments.*\[0\]"),
    # baseline
    "baseline name": ({"baseline": "black"}, r"'baseline'.*'blur'.*'black'"),
    "baseline None": ({"baseline": None}, r"'baseline'.*None"),
    "baseline raises": ({"baseline": lambda x: 1 / 0}, r"'baseline'.*failed on x: ZeroDivisionError"),
    "baseline with a graph": ({"baseline": [torch.ones(4).requires_grad_()]}, r"'baseline'.*requires_grad"),
    "labels with a graph": ({"features": [torch.ones(4).requires_grad_()] * 4}, r"'features'.*integers"),
    "baseline complex": ({"baseline": 1j}, r"'baseline'.*1j"),
    # model
    "model None": ({"model": None}, r"'model'.*torch\.nn\.Module.*NoneType"),
    "model class": ({"model": nn.Linear}, r"'model'.*the class Linear"),
    "model text": ({"model": "resnet50"}, r"'model'.*a str"),
    "model raises": ({"model": lambda z: 1 / 0}, r"raised ZeroDivisionError on points of shape \(2, 4\)"),
    "model detached": ({"model": lambda z: z.detach().sum(1)}, r'detached.*plan="endpoint"'),
    "model argmax": ({"model": lambda z: z.argmax(1)}, r'detached.*plan="endpoint"'),
    "model NumPy": ({"model": lambda z: np.ones(len(z))}, r"ndarray.*models\.function or gralis\.models\.blackbox"),
    "model complex": ({"model": lambda z: z.sum(1) * 1j}, r"complex values"),
    "model one number": ({"model": lambda z: z.sum()}, r"single number for the whole batch"),
    "own NumPy": ({"model": Own(lambda z: z.sum(1).numpy())}, r"tensor of shape \(2,\), one per row.*ndarray"),
    "own column": ({"model": Own(lambda z: z.sum(1, keepdim=True))}, r"tensor of shape \(2,\).*\(2, 1\)"),
    "own gradient shape": ({"model": Own(gradients=lambda z: z[:, 1:])}, r"shaped like the points, \(8, 4\).*\(8, 3\)"),
    "own gradient None": ({"model": Own(gradients=lambda z: None)}, r"tensor.*NoneType"),
    "own pair": ({"model": Unpaired()}, r"Unpaired"),
    "own raises": ({"model": Own(lambda z: 1 / 0)}, r"Own raised ZeroDivisionError on points of shape \(2, 4\)"),
    "black box": ({"model": BOX}, r'no gradient.*plan="endpoint"'),
    "black box permutation": ({"model": BOX, "plan": "permutation"}, r'no gradient.*plan="endpoint"'),
    "black box classes": (
        {"model": models.blackbox(lambda z: z[:, :3]), "plan": "endpoint"},
        r"3 outputs per row.*0\.\.2",
    ),
    # target
    "target missing": ({"model": classes}, r"3 outputs per row.*target=k \(0\.\.2\).*gralis\.targets"),
    "target missing h w": ({"model": lambda z: z.reshape(-1, 2, 2)}, r"\(rows, 2, 2\).*tuple of 2 indices"),
    "target beyond": ({"model": classes, "target": 3}, r"target=3 is out of range.*3 outputs per row, 0\.\.2"),
    "target below": ({"model": classes, "target": -4}, r"target=-4 is out of range.*0\.\.2"),
    "target without choice": ({"target": 0}, r"one number per row.*target=None"),
    "target float": ({"model": classes, "target": 1.5}, r"'target'.*an int.*1\.5"),
    "target bool": ({"model": classes, "target": True}, r"'target'.*True"),
    "target text": ({"model": classes, "target": "cat"}, r"'target'.*'cat'"),
    "target short": ({"model": lambda z: z.reshape(-1, 2, 2), "target": (1,)}, r"1 indices.*\(rows, 2, 2\) need 2"),
    "target pair": ({"model": lambda z: z.reshape(-1, 2, 2), "target": (1, 5)}, r"\(1, 5\) is out of range"),
    "target function": ({"model": classes, "target": lambda z: z}, r"must return a tensor \(2,\).*\(2, 3\)"),
    "target raises": ({"model": classes, "target": lambda z: z["a"]}, r"The target .* raised"),
    "target named": ({"model": classes, "target": targets.probability(7)}, r"probability\(7\) is out of range.*0\.\.2"),
    "target of a model": ({"model": Own(), "target": 1}, r"target=1 has no effect"),
    # plan and budget
    "budget too small": ({"x": x_of(30), "budget": 20}, r"budget of 20 is too small.*at least \d+"),
    "budget for all": ({"x": x_of(9), "plan": "exhaustive"}, r"511 rays.*at least 2044.*1024.*budget=None"),
    "budget for a pair": ({"plan": "permutation", "budget": 70}, r"budget of 70.*at least 80"),
    "budget for forwards": ({"plan": "endpoint", "budget": 9}, r"budget of 9.*at least 1[68]"),
    "budget for draws": ({"plan": "independent", "budget": 5}, r"budget of 5.*at least 32"),
    "budget zero": ({"budget": 0}, r"'budget'.*whole number >= 1.*0"),
    "budget float": ({"budget": 99.5}, r"'budget'.*whole number.*99\.5"),
    "budget text": ({"budget": "all"}, r"'budget'.*whole number.*'all'"),
    "budget bool": ({"budget": True}, r"'budget'.*whole number.*True"),
    "too many to enumerate": ({"x": x_of(40), "plan": "exhaustive"}, r"2\^40 = 1\.1e\+12.*16.*plan='shared'"),
    "too many without a budget": ({"x": x_of(40), "budget": None}, r"2\^40"),
    "endpoint without a budget": ({"x": x_of(40), "plan": "endpoint", "budget": None}, r"budget|2\^40"),
    "plan": ({"plan": "smart"}, r"'plan'.*'shared'.*'smart'"),
    "plan None": ({"plan": None}, r"'plan'.*'shared'.*None"),
    "plan function": ({"plan": plans.shared}, r"'plan'.*gralis\.plans"),
    "permutations odd": ({"plan": plans.permutation(n_permutations=3)}, r"'n_permutations'.*even.*3"),
    "quadrature": ({"quadrature": "simpson"}, r"'quadrature'.*'midpoint'.*'simpson'"),
    "quadrature array": ({"quadrature": np.arange(2)}, r"'quadrature'.*'midpoint'"),
    # kernel
    "kernel": ({"kernel": "gaussian"}, r"'kernel'.*Gaussian\(sigma\).*'gaussian'"),
    "kernel class": ({"kernel": Uniform}, r"'kernel'.*Uniform\(\).*class"),
    "kernel None": ({"kernel": None}, r"'kernel'.*None"),
    "kernel number": ({"kernel": 0.75}, r"'kernel'.*0\.75"),
    "kernel list": ({"kernel": []}, r"'kernel'.*at least one.*empty"),
    "kernel of many": ({"x": x_of(17), "kernel": lambda m: np.ones(len(m))}, r"2\^n.*16.*n_features = 17"),
    "kernel zero": ({"kernel": lambda m: np.zeros(len(m))}, r"zero on every coalition.*Z is zero"),
    "kernel negative": ({"kernel": lambda m: -np.ones(len(m))}, r"'kernel'.*>= 0.*-1"),
    "kernel nan": ({"kernel": lambda m: np.full(len(m), NAN)}, r"'kernel'.*finite.*nan"),
    "kernel shape": ({"kernel": lambda m: np.ones((len(m), 2))}, r"'kernel'.*returns \(1,\).*\(1, 2\)"),
    "kernel raises": ({"kernel": lambda m: 1 / 0}, r"'kernel'.*failed.*ZeroDivisionError"),
    "kernel of size zero": ({"kernel": SizeKernel(lambda s: 0.0)}, r"'fn'.*not all zero"),
    "kernel of size negative": ({"kernel": SizeKernel(lambda s: 1.0 - s)}, r"'fn'.*>= 0.*fn\(3\) = -2"),
    "kernel of size raises": ({"kernel": SizeKernel(lambda s: 1 / s)}, r"SizeKernel failed.*ZeroDivisionError"),
    # the other options
    "tolerance zero": ({"tolerance": 0}, r"'tolerance'.*> 0.*0"),
    "tolerance negative": ({"tolerance": -0.1}, r"'tolerance'.*-0\.1"),
    "tolerance text": ({"tolerance": "low"}, r"'tolerance'.*'low'"),
    "tolerance nan": ({"tolerance": NAN}, r"'tolerance'.*nan"),
    "atol negative": ({"atol": -1}, r"'atol'.*>= 0.*-1"),
    "atol text": ({"atol": "x"}, r"'atol'.*'x'"),
    "atol None": ({"atol": None}, r"'atol'.*None"),
    "level zero": ({"level": 0.0}, r"'level'.*between 0 and 1.*0\.0"),
    "level percent": ({"level": 95}, r"'level'.*95"),
    "level text": ({"level": "0.95"}, r"'level'.*'0\.95'"),
    "n_nodes zero": ({"n_nodes": 0}, r"'n_nodes'.*from 1 to .*0"),
    "n_nodes float": ({"n_nodes": 2.0}, r"'n_nodes'.*2\.0"),
    "replicates one": ({"replicates": 1}, r"'replicates'.*from 2 to .*1"),
    "replicates text": ({"replicates": "4"}, r"'replicates'.*'4'"),
    "seed negative": ({"seed": -1}, r"'seed'.*>= 0.*-1"),
    "seed float": ({"seed": 1.5}, r"'seed'.*1\.5"),
    "seed text": ({"seed": "lucky"}, r"'seed'.*'lucky'"),
    "batch_size zero": ({"batch_size": 0}, r"'batch_size'.*>= 1.*0"),
    "batch_size text": ({"batch_size": "big"}, r"'batch_size'.*'big'"),
    "batch_size None": ({"batch_size": None}, r"'batch_size'.*None"),
    "max_memory zero": ({"max_memory": 0}, r"'max_memory'.*>= 1.*0"),
    "max_memory text": ({"max_memory": "2GB"}, r"'max_memory'.*'2GB'"),
    "max_seconds zero": ({"max_seconds": 0}, r"'max_seconds'.*> 0.*0"),
    "coalition_values text": ({"coalition_values": "no"}, r"'coalition_values'.*True, False.*'no'"),
    "on_interrupt": ({"on_interrupt": "ask"}, r"'on_interrupt'.*'raise', 'return'.*'ask'"),
    "progress": ({"progress": 5}, r"'progress'.*function of \(done, total\).*5"),
    "device": ({"device": "moon"}, r"'device'.*'cpu'.*'moon'"),
    "device absent": ({"device": "cuda:99"}, r"'device'.*'cuda:99'"),
    "dtype": ({"dtype": torch.int64}, r"'dtype'.*floating.*int64"),
    "dtype text": ({"dtype": "float32"}, r"'dtype'.*'float32'"),
    "dtype float8": ({"dtype": torch.float8_e4m3fn}, r"'dtype'.*float8"),
}


def is_a_sentence(error: GralisError) -> bool:
    text = str(error)
    return "\n" not in text and len(text) < 600 and len(text.split()) > 5


@pytest.mark.parametrize("case", list(TABLE))
def test_bad_input_gets_one_clear_sentence(case):
    given_, says = TABLE[case]
    arguments = {"model": smooth, "x": x_of(4), **given_}
    with pytest.raises(GralisError) as caught:
        gralis.explain(**arguments)
    assert re.search(says, str(caught.value)), str(caught.value)
    assert is_a_sentence(caught.value), str(caught.value)


def test_the_kind_of_error_says_who_can_mend_it():
    assert issubclass(GralisError, ValueError)
    with pytest.raises(BudgetError):
        gralis.explain(smooth, x_of(30), budget=20)
    with pytest.raises(ModelError):
        gralis.explain(holed(0.3, NAN), x_of(4))


@pytest.mark.parametrize("sigma", [0, 0.0, -1, -0.5, NAN, INF, "wide", None, True, 1j, [0.5]])
def test_sigma_must_be_positive(sigma):
    with pytest.raises(GralisError, match=r"'sigma' parameter of Gaussian must be a number > 0\. Got .*Uniform\(\)"):
        Gaussian(sigma)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Gaussian(1.0, "manhattan"), r"'distance'.*'relative', 'euclidean'.*'manhattan'"),
        (lambda: SizeKernel(3), r"'fn'.*function.*3"),
        (lambda: plans.exhaustive(0), r"'most_features'.*>= 1.*0"),
        (lambda: plans.permutation(n_permutations=0), r"'n_permutations'.*>= 1.*0"),
        (lambda: plans.permutation(orders=np.array([[0, 0, 1]])), r"'orders'.*permutations of 0"),
        (lambda: gralis.cost(smooth, x_of(4), bugdet=7), r"'bugdet'.*budget"),
        (lambda: gralis.cost(smooth, x_of(30), budget=7), r"budget of 7 .*at least"),
        (lambda: gralis.cost(classes, x_of(4)), r"target=k \(0\.\.2\)"),
    ],
)
def test_other_doors_have_sentences_too(make, says):
    with pytest.raises(GralisError, match=says):
        make()


def test_an_unknown_option_of_explain_is_a_type_error():
    with pytest.raises(TypeError, match="bugdet"):
        gralis.explain(smooth, x_of(4), bugdet=7)


@pytest.fixture(scope="module")
def explanation() -> Explanation:
    return gralis.explain(smooth, x_of(8), budget=300)


@pytest.mark.parametrize(
    ("use", "says"),
    [
        (lambda e: e.interval(1.0), r"'level'.*between 0 and 1.*1\.0"),
        (lambda e: e.interval("0.9"), r"'level'.*'0\.9'"),
        (lambda e: e.interval(NAN), r"'level'.*nan"),
        (lambda e: e.top(0), r"'k'.*>= 1.*0"),
        (lambda e: e.top("all"), r"'k'.*'all'"),
        (lambda e: e.sweep([]), r"'sigmas'.*at least one"),
        (lambda e: e.sweep(0.5), r"'sigmas'.*0\.5"),
        (lambda e: e.sweep([-1.0]), r"'sigma'.*> 0.*-1"),
        (lambda e: e.sweep([-INF]), r"'sigma'.*> 0.*-inf"),
        (lambda e: e.sweep(["a"]), r"'sigma'.*'a'"),
        (lambda e: e.with_kernel("uniform"), r"'kernel'.*'uniform'"),
        (lambda e: e.with_kernel(Uniform), r"'kernel'.*class"),
        (lambda e: e.extend(0), r"'budget'.*from 1 to.*0"),
        (lambda e: e.extend("more"), r"'budget'.*'more'"),
        (lambda e: e.extend(3), r"needs a budget of \d+.*3"),
        (lambda e: e.save("/nowhere/at/all.gralis"), r"/nowhere/at does not exist"),
    ],
)
def test_methods_of_an_explanation_have_sentences_too(explanation, use, says):
    with pytest.raises(GralisError, match=says) as caught:
        use(explanation)
    assert is_a_sentence(caught.value)


def test_nothing_is_evaluated_before_the_input_is_checked():
    def never(z: torch.Tensor) -> torch.Tensor:
        raise AssertionError("the model was called")

    for case in (
        "x nan",
        "baseline nan",
        "labels gap",
        "x is the baseline",
        "seed text",
        "x picture of bytes",
        "kernel None",
    ):
        arguments = {"x": x_of(4), **TABLE[case][0], "model": never}
        with pytest.raises(GralisError, match=TABLE[case][1]):
            gralis.explain(**arguments)


@pytest.mark.parametrize("plan", ["shared", "exhaustive", "permutation", "independent", "endpoint"])
def test_an_output_that_is_not_finite_somewhere_is_never_averaged_away(plan):
    """One coalition out of 63 is bad: where all the features are far along."""

    def model(z: torch.Tensor) -> torch.Tensor:
        return torch.where(z.sum(1) > 0.9 * x_of(6).sum(), torch.full_like(z[:, 0], NAN), smooth(z))

    with pytest.raises(ModelError, match=r"output is nan, first at the point a = 1 on the ray of features \[0, 1, 2"):
        gralis.explain(model, x_of(6), plan=plan, budget=300)


@pytest.mark.parametrize("n", [2, 3, 12])
@pytest.mark.parametrize(
    "kernel", [SizeKernel(lambda s: float(s == 0)), lambda m: (m.sum(1) == 0) * 1.0], ids=["size", "masks"]
)
@pytest.mark.parametrize("plan", ["shared", "exhaustive", "permutation", "independent", "endpoint"])
def test_a_kernel_of_single_features_only(n, kernel, plan):
    """pi(S) = 0 but for the empty S: phi_i = v({i}), whatever the plan."""
    if plan == "permutation" and n == 12:
        pytest.skip("no feature is first in enough permutations")
    x = x_of(n)
    budget = {"endpoint": 3**n, "exhaustive": None}.get(plan, 2000)
    found = gralis.explain(smooth, x, kernel=kernel, plan=plan, budget=budget)
    alone = torch.tanh(x) ** 2
    np.testing.assert_allclose(found.values, alone.numpy(), atol=5 * np.nan_to_num(found.stderr).max() + 5e-3)


# ---- anything at all

_FLOATS = [torch.float64, torch.float32, torch.float16, torch.bfloat16]
_OTHERS = [torch.int64, torch.uint8, torch.bool, torch.complex64, torch.float8_e5m2]
_PLANS = ["shared", "exhaustive", "permutation", "independent", "endpoint"]


def filled(shape: tuple[int, ...], seed: int, scale: float = 1.0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * scale


@st.composite
def odd_arrays(draw: st.DrawFn, shape: tuple[int, ...]) -> Any:
    """Almost what is wanted: a strange dtype, scale, entry, layout or container."""
    tensor = filled(shape, draw(st.integers(0, 9)), draw(st.sampled_from([1.0, 0.0, 1e-300, 1e5, 1e30, 1e160, 1e308])))
    if tensor.numel() and draw(st.booleans()):
        tensor.view(-1)[-1] = draw(st.sampled_from([NAN, INF, -INF, 1e-320]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a conversion that overflows, or drops an imaginary part, is the point
        tensor = tensor.to(draw(st.sampled_from(_FLOATS + _OTHERS)))
    forms = [tensor, (tensor,), [tensor], {"z": tensor}, {"z": tensor, 3: tensor}, (tensor, tensor), tensor.tolist()]
    forms += [tensor.flatten(), tensor[None], "text", None, object(), (), {}, [], np.array("a")]
    if tensor.dtype in (torch.float64, torch.float32):
        forms += [
            tensor.numpy(),
            tensor.numpy().T,
            np.flip(tensor.numpy()),
            tensor.requires_grad_(),
            tensor.to_sparse(),
        ]
    return draw(st.sampled_from(forms))


@st.composite
def inputs(draw: st.DrawFn) -> dict[str, Any]:
    """The arguments of one call of explain: all in order, but for at most two."""
    shape = tuple(draw(st.lists(st.integers(1, 4), max_size=3)))
    size = math.prod(shape)
    x = filled(shape, draw(st.integers(0, 9))).to(draw(st.sampled_from(_FLOATS)))
    few = np.asarray(np.arange(size).reshape(shape) % draw(st.integers(1, 9)))
    order: dict[str, st.SearchStrategy[Any]] = {
        "model": st.sampled_from(["smooth", "sum", "steps", "constant", "pole", "box", "function"]),
        "x": st.just(x),
        "baseline": st.sampled_from([0.0, 1, filled(shape, 11), baselines.sample(filled((3, *shape), 12)), "mean"]),
        "features": st.sampled_from([None, few, few]),
        "kernel": st.sampled_from(
            [Gaussian(0.75), Gaussian(0.1, "euclidean"), Uniform(), SizeKernel(lambda s: 0.5**s)]
        ),
        "plan": st.sampled_from(_PLANS),
        "budget": st.sampled_from([40, 300, 700]) | st.integers(1, 600),
        "tolerance": st.sampled_from([None, None, 0.1]),
        "quadrature": st.sampled_from([None, None, "random", "midpoint", "riemann", "gauss-legendre"]),
        "n_nodes": st.sampled_from([None, None, 1, 2, 5]),
        "replicates": st.sampled_from([None, None, 2, 5]),
        "coalition_values": st.booleans(),
        "batch_size": st.sampled_from(["auto", 1, 7, 10_000]),
        "max_memory": st.sampled_from([None, None, 1, 10_000]),
        "seed": st.sampled_from([0, 1, None, 2**70]),
    }
    odd: dict[str, st.SearchStrategy[Any]] = {
        "model": st.sampled_from(list(MODELS)),
        "x": odd_arrays(shape),
        "baseline": odd_arrays(shape) | st.sampled_from(["blur", "noise", "dark", lambda x: x, lambda x: 0 * x, NAN]),
        "features": st.sampled_from(
            [np.arange(size) + 1, [0, 5], "slic", np.ones(shape), few[..., None], few.tolist()]
        ),
        "kernel": st.sampled_from(
            [
                Gaussian(1e-200),
                Gaussian(1e200, "euclidean"),
                SizeKernel(lambda s: float(s > 0)),
                SizeKernel(lambda s: 1e300 * s),
                lambda masks: 1.0 + masks.sum(1),
                lambda masks: masks.sum(1) % 2.0,
                lambda masks: masks,
                [Uniform(), Gaussian(1.0)],
                "uniform",
            ]
        ),
        "plan": st.sampled_from(["best", 3, plans.permutation(4, antithetic=False), plans.exhaustive(3)]),
        "budget": st.sampled_from([0, -5, 2.5, None if size <= 6 else 10**3, np.int64(300)]),
        "tolerance": st.sampled_from([1e-300, 1e300, -1, "low"]),
        "quadrature": st.sampled_from(["simpson", 2]),
        "n_nodes": st.sampled_from([0, 64, 1.0]),
        "replicates": st.sampled_from([1, 500, "two"]),
        "coalition_values": st.sampled_from([None, 1]),
        "batch_size": st.sampled_from([0, None, 1e3]),
        "max_memory": st.sampled_from([0, 1.5, 10**30]),
        "seed": st.sampled_from([-1, 0.5]),
        "target": st.sampled_from([0, 1, 7, (0,), (1, 1), "cat", targets.margin(0), lambda outputs: outputs]),
        "dtype": st.sampled_from([torch.float32, torch.bfloat16, torch.float16, torch.int8]),
        "level": st.sampled_from([0.5, 2]),
        "atol": st.sampled_from([0.1, -1]),
        "max_seconds": st.sampled_from([1e-9, 1e9, -1]),
        "on_interrupt": st.sampled_from(["return", "ask"]),
    }
    strange = draw(st.sets(st.sampled_from(list(odd)), max_size=2))
    return {name: draw(odd[name] if name in strange else order[name]) for name in {**order, **dict.fromkeys(strange)}}


MODELS = {
    "smooth": smooth,
    "sum": lambda *a, **k: sum(z.reshape(len(z), -1).sum(1) for z in (*a, *k.values())),
    "classes": classes,
    "steps": lambda z: z.reshape(len(z), -1).round().sum(1),
    "constant": lambda z: z.reshape(len(z), -1).sum(1) * 0 + 1,
    "pole": lambda z: 1 / z.reshape(len(z), -1).sum(1),
    "log": lambda z: z.reshape(len(z), -1).sum(1).log(),
    "detached": lambda z: z.detach().reshape(len(z), -1).sum(1),
    "matrix": lambda z: z @ torch.ones(3, 2, dtype=z.dtype),
    "nothing": lambda z: None,
    "box": models.blackbox(lambda z: z.reshape(len(z), -1).sum(1)),
    "function": models.function(lambda z: (z**2).reshape(len(z), -1).sum(1), lambda z: 2 * z),
    "not callable": 7,
}


@settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(arguments=inputs())
def test_anything_gives_an_explanation_or_a_gralis_error(arguments):
    """Nothing else may come out: no other error, no warning, no number that is not finite."""
    arguments = {**arguments, "model": MODELS[arguments["model"]]}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The kernel underflowed to zero")  # Algorithm 1 says so itself
        try:
            found = gralis.explain(**arguments)
        except GralisError as error:
            text = str(error)
        else:
            assert isinstance(found, Explanation)
            assert np.isfinite(found.values).all()
            assert found.values.shape == (found.n_features,)
            text = str(found)
    assert text
