"""Every mistake that a new user makes gets the sentence that a person would have written."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import gralis
from gralis import GralisError
from gralis.features import groups
from gralis.interop.captum import Gralis

pytest_plugins = ["cli.conftest"]


def mlp(n_outputs: int = 3) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, n_outputs)).eval()


X = torch.linspace(0.2, 1, 5)


def test_a_device_that_is_not_here() -> None:
    missing = "cuda" if not torch.cuda.is_available() else "cuda:99"
    with pytest.raises(GralisError, match=rf"must be one that is here \(.+\)\. Got '{missing}' instead\. Leave dev"):
        gralis.explain(mlp(), X, target=0, device=missing)
    with pytest.raises(GralisError, match="None or a torch device such as 'cpu'"):
        gralis.explain(mlp(), X, target=0, device="gpu")


class Answers(nn.Module):
    """It answers with a plain dict."""

    def __init__(self) -> None:
        super().__init__()
        self.net = mlp()

    def forward(self, z: Tensor) -> dict[str, Tensor]:
        return {"hidden": z, "logits": self.net(z)}


def test_a_plain_dict_with_logits_is_read_like_an_object_with_logits() -> None:
    model = Answers().eval()
    plain = gralis.explain(model.net, X, target=1)
    assert np.array_equal(gralis.explain(model, X, target=1).values, plain.values)
    assert len(gralis.explain(model, X, target="all")) == 3


class Bag(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(10, 4)

    def forward(self, ids: Tensor) -> Tensor:
        return self.embedding(ids).mean((1, 2))


def test_an_embedding_network_fed_floats() -> None:
    with pytest.raises(GralisError, match=r"embedding, which takes whole numbers: give x as integers, such as x\.long"):
        gralis.explain(Bag().eval(), torch.tensor([1.0, 2.0, 3.0]))


def test_captum_refuses_a_mask_and_features_together() -> None:
    mask = torch.tensor([[0, 0, 1, 1, 1]])
    with pytest.raises(GralisError, match=r"'features' parameter of Gralis\.attribute must be left out if there is a"):
        Gralis(mlp()).attribute(X[None], target=0, feature_mask=mask, features=groups([0, 0, 1, 1, 1]))
    by_mask = Gralis(mlp()).attribute(X[None], target=0, feature_mask=mask, budget=100)
    by_features = Gralis(mlp()).attribute(X[None], target=0, features=groups([0, 0, 1, 1, 1]), budget=100)
    assert torch.equal(by_mask, by_features)
    assert len(by_features[0].unique()) == 2


def test_a_gradient_of_nan_says_what_to_do_and_that_helps() -> None:
    def magnitude(z: Tensor) -> Tensor:
        return (z**2).sum(1).sqrt()  # the gradient of the root is nan where z is 0

    def first_parts(z: Tensor) -> Tensor:
        return magnitude(z[:, :2]) + magnitude(z[:, 2:])

    with pytest.raises(GralisError, match=r"choose another baseline, such as baseline=1e-3, or plan='endpoint'"):
        gralis.explain(first_parts, X)
    assert np.isfinite(gralis.explain(first_parts, X, baseline=1e-3).values).all()
    assert np.isfinite(gralis.explain(first_parts, X, plan="endpoint").values).all()


def test_lightgbm_and_column_names_with_spaces() -> None:
    lightgbm, pandas = pytest.importorskip("lightgbm"), pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame(rng.normal(size=(60, 2)), columns=["mean radius", "area"])
    model = lightgbm.LGBMRegressor(n_estimators=3, verbose=-1, min_child_samples=5).fit(frame, frame["area"])
    found = gralis.explain(model, frame.iloc[3], baseline=frame)
    assert np.isclose(found.f_x, model.predict(frame.iloc[[3]])[0])
    assert abs(found.values[1]) > abs(found.values[0])


@pytest.mark.parametrize("quantised_first", [False, True])
def test_a_quantised_model_is_compared_by_its_values(quantised_first: bool) -> None:
    model = mlp()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch announces that its quantisation will move
        small = torch.ao.quantization.quantize_dynamic(model, {nn.Linear}, dtype=torch.qint8).eval()
    pair = (small, model) if quantised_first else (model, small)
    found = gralis.compare(*pair, X, target=0, budget=200)
    assert "both models are compared with plan='endpoint'" in repr(found)
    assert found.a.plan["name"] == "endpoint"
    alone = gralis.explain(pair[1], X, target=0, plan="endpoint", budget=200)
    assert np.allclose(found.b.values, alone.values, atol=1e-6)
    with pytest.raises(GralisError, match="quantised layers inside"):
        gralis.compare(*pair, X, target=0, plan="shared", budget=200)


def test_a_folder_given_to_explain(gralis_run) -> None:
    Path("pictures").mkdir()
    code, _, error = gralis_run("explain", "pictures", "--model", "net.py:build")
    assert code == 2
    assert (
        "pictures is a folder; gralis explain takes pictures, and gralis batch pictures --model net.py:build" in error
    )


def test_a_target_by_its_name(gralis_run) -> None:
    Path("drinks.txt").write_text("tea\nCoffee\nespresso maker\n")
    options = ("explain", "photo.jpg", "--model", "net.py:build", "--size", "24", "--segments", "4", "--budget", "60")
    named = gralis_run(*options, "--labels", "drinks.txt", "--target", "coffee", "--json")
    numbered = gralis_run(*options, "--labels", "drinks.txt", "--target", "1", "--json")
    assert named[0] == numbered[0] == 0
    assert '"target": "output[1]"' in named[1] or '"target": "1"' in named[1]
    assert '"label": "Coffee"' in named[1]
    code, _, error = gralis_run(*options, "--labels", "drinks.txt", "--target", "cofee")
    assert code == 2
    assert "no output is called 'cofee' in --labels; similar names there are coffee" in error
    code, _, error = gralis_run(*options, "--target", "coffee")
    assert code == 2
    assert "a name needs --labels" in error


def test_batch_explains_the_only_output_of_a_regressor(gralis_run) -> None:
    pytest.importorskip("pyarrow")
    options = ("batch", "table.csv", "--drop", "price", "--model", "net.py:rows", "--budget", "60")
    code, out, error = gralis_run(*options, "--out", "rows")
    assert (code, out, error) == (0, "3 inputs, 0 without a result, in rows\n", "")


def test_batch_without_pyarrow(gralis_run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    code, _, error = gralis_run("batch", "table.csv", "--drop", "price", "--model", "net.py:rows", "--out", "rows")
    assert (code, error) == (2, 'gralis: Result tables need pyarrow: pip install "gralis[many]".\n')
