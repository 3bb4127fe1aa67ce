"""NumPy models: values and gradients cross over in float64, wrong shapes are sentences, a black box has no rays."""

from __future__ import annotations

import functools

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from gralis import explain, models
from gralis.errors import GralisError, ModelError

POINTS = torch.tensor([[1.0, 2.0, 3.0], [-1.0, 0.5, 4.0]])


def product(x):
    return x.prod(axis=1)


def product_gradient(x):
    return np.stack([x[:, [1, 2]].prod(axis=1), x[:, [0, 2]].prod(axis=1), x[:, [0, 1]].prod(axis=1)], axis=1)


def test_function_gives_value_and_gradient_in_float64():
    model = models.function(product, product_gradient)
    values, gradients = model.value_and_gradient(POINTS)
    assert values.dtype == gradients.dtype == torch.float64
    assert values.tolist() == model.value(POINTS).tolist() == [6.0, -2.0]
    assert gradients.tolist() == [[6.0, 3.0, 2.0], [2.0, -4.0, -0.5]]


def test_the_functions_work_in_float64():
    third = torch.tensor([[1 / 3]], dtype=torch.float32)
    model = models.function(lambda x: x[:, 0] + 1e-12, lambda x: x)
    assert model.value(third).item() == third.double().item() + 1e-12  # lost in float32
    assert models.blackbox(lambda x: x[:, 0] + 1e-12).value(third).item() == third.double().item() + 1e-12


def test_adapters_satisfy_the_protocol():
    for model in (models.function(product, product_gradient), models.blackbox(product), models.torch(torch.sin)):
        assert isinstance(model, models.Model)
        assert models.adapt(model, None) is model
    assert [m.differentiable for m in (models.function(product, product), models.blackbox(product))] == [True, False]


def test_function_on_several_inputs():
    model = models.function(
        lambda p: p[0].sum(axis=1) * p[1], lambda p: (np.ones((2, 3)) * p[1][:, None], p[0].sum(axis=1))
    )
    values, gradients = model.value_and_gradient((POINTS, torch.tensor([2.0, 3.0])))
    assert values.tolist() == [12.0, 10.5]
    assert [g.tolist() for g in gradients] == [[[2.0] * 3, [3.0] * 3], [6.0, 3.5]]
    named = models.function(lambda p: p["a"] * p["b"], lambda p: {"b": p["a"], "a": p["b"]})
    _, gradients = named.value_and_gradient({"a": torch.tensor([2.0]), "b": torch.tensor([5.0])})
    assert {key: g.item() for key, g in gradients.items()} == {"a": 5.0, "b": 2.0}


def test_arrays_are_copies_on_the_way_in_and_out():
    kept = np.zeros(2)

    def careless(x):
        x[:] = 7.0
        kept[:] = x[:, 0]
        return kept

    points = torch.ones(2, 3, dtype=torch.float64)
    values = models.function(careless, careless).value(points)
    kept[:] = -1.0
    assert torch.equal(points, torch.ones(2, 3, dtype=torch.float64))
    assert values.tolist() == [7.0, 7.0]


def test_points_with_a_graph_are_fine():
    points = POINTS.clone().requires_grad_()
    assert models.function(product, product_gradient).value(points * 1).requires_grad is False


def boom(x):
    raise KeyError("weights")


@pytest.mark.parametrize(
    ("value", "gradient", "says"),
    [
        (lambda x: x, product_gradient, r"must return an array of shape \(2,\). Got shape \(2, 3\) instead"),
        (product, product, r"The gradient of .*product must return an array of shape \(2, 3\). Got shape \(2,\)"),
        (lambda x: ["a", "b"], product_gradient, "must return real numbers. Got a list"),
        (lambda x: None, product_gradient, r"Got shape \(\)"),
        (boom, product_gradient, r"boom raised KeyError on points of shape \(2, 3\)"),
        (product, boom, r"The gradient of .* raised KeyError on points of shape \(2, 3\)"),
    ],
)
def test_function_refuses_with_a_sentence(value, gradient, says):
    with pytest.raises(ModelError, match=says):
        models.function(value, gradient).value_and_gradient(POINTS)


@pytest.mark.parametrize("found", [(np.zeros(2),), [np.zeros(2)] * 2, {"a": np.zeros(2), "b": np.zeros(2)}])
def test_gradient_of_several_inputs_must_have_their_form(found):
    model = models.function(lambda p: p[0], lambda p: found)
    with pytest.raises(ModelError, match="must return a tuple like the points"):
        model.value_and_gradient((torch.ones(2), torch.ones(2)))


def test_integer_points_have_no_gradient():
    model = models.function(product, product_gradient)
    assert model.value(torch.tensor([[1, 2, 3]])).tolist() == [6.0]
    with pytest.raises(GralisError, match=r"int64 cannot move along a ray.*layer="):
        model.value_and_gradient(torch.tensor([[1, 2, 3]]))


def test_function_needs_functions():
    with pytest.raises(GralisError, match=r"'gradient' parameter of models.function"):
        models.function(product, 3.0)


def test_names_and_fingerprints():
    model = models.function(product, product_gradient, name="volume")
    assert model.name == "volume"
    assert "product_gradient" in model.fingerprint()
    other = models.function(product, lambda z: product_gradient(z))
    assert other.fingerprint() != models.function(product, product_gradient).fingerprint()
    assert models.blackbox(functools.partial(product)).name.endswith(".product")


@pytest.fixture(scope="module")
def classifier():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 3))
    return LogisticRegression().fit(x, (x[:, 0] > 0).astype(int) + (x[:, 1] > 0))


def test_blackbox_on_predict_proba(classifier):
    model = models.blackbox(classifier.predict_proba, target=2)
    assert model.value(POINTS).tolist() == classifier.predict_proba(POINTS.double().numpy())[:, 2].tolist()
    total = models.blackbox(classifier.predict_proba, target=lambda p: p[:, 0] + p[:, 1]).value(POINTS)
    torch.testing.assert_close(total, 1 - model.value(POINTS))
    assert (
        repr(model)
        == "BlackboxModel(sklearn.linear_model._logistic.LogisticRegression.predict_proba, target=output[2])"
    )


def test_blackbox_has_no_gradient(classifier):
    with pytest.raises(
        GralisError, match=r'has no gradient, so there are no rays; use plan="endpoint" or plan="values"'
    ):
        models.blackbox(classifier.predict_proba, target=1).value_and_gradient(POINTS)


def test_blackbox_takes_lists_and_multi_output():
    assert models.blackbox(lambda x: [float(row.sum()) for row in x]).value(POINTS).tolist() == [6.0, 3.5]
    trees = models.blackbox(lambda x: [x, 2 * x], target=lambda outputs: outputs[1][:, 0])
    assert trees.value(POINTS).tolist() == [2.0, -2.0]


@pytest.mark.parametrize(
    ("fn", "target", "says"),
    [
        (lambda x: x, None, "The model returns 3 outputs per row; choose one with target=k"),
        (lambda x: x, 3, "out of range"),
        (lambda x: np.array(["cat"] * len(x)), None, "must return real numbers.*predict_proba"),
        (lambda x: x[:1, 0], None, "returned 1 values for 2 rows"),
        (boom, None, r"boom raised KeyError on points of shape \(2, 3\)"),
        (lambda x: x, lambda z: z["a"], r"The target .*lambda.* raised \w+Error on points of shape \(2, 3\)"),
    ],
)
def test_blackbox_refuses_with_a_sentence(fn, target, says):
    with pytest.raises(GralisError, match=says):
        models.blackbox(fn, target).value(POINTS)


def test_blackbox_needs_a_function(classifier):
    with pytest.raises(
        GralisError, match=r"Got a LogisticRegression instead. For a scikit-learn estimator pass the method"
    ):
        models.blackbox(classifier)


def test_adapt_chooses_by_kind(classifier):
    assert type(models.adapt(torch.nn.Linear(3, 1))).__name__ == "TorchModel"
    assert type(models.adapt(lambda x: x.sum(dim=1))).__name__ == "TorchModel"
    assert type(models.adapt(classifier)).__name__ == "EstimatorModel"
    for wrong, got in (
        (object(), "a object"),
        (torch.nn.Linear, "the class Linear"),
        (None, "a NoneType"),
    ):
        with pytest.raises(
            GralisError, match=rf"'model' parameter of explain must be .*predict_proba.* Got {got} instead"
        ):
            models.adapt(wrong)


@pytest.mark.parametrize("option", [{"target": 0}, {"device": "cpu"}, {"dtype": torch.float64}])
def test_adapt_does_not_ignore_options(option):
    with pytest.raises(GralisError, match=f"so {next(iter(option))}=.* has no effect"):
        models.adapt(models.blackbox(product, target=1), **option)


def test_an_adapter_without_a_target_takes_the_one_given():
    box = models.blackbox(lambda x: np.stack([x[:, 0], 5 * x[:, 1]], axis=1))
    points = torch.tensor([[1.0, 2.0]])
    assert models.adapt(box, 1).value(points).tolist() == [10.0]
    assert box.target is None
    found = explain(box, torch.ones(2), target=[0, 1], plan="values", budget=20)
    np.testing.assert_allclose(found.values, [[1, 0], [0, 5]], atol=1e-12)
