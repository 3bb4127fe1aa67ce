"""Other packages: captum, shap, quantus, scikit-learn pipelines, notebooks."""

from __future__ import annotations

import inspect
import subprocess
import sys

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import gralis
from gralis import GralisError, explain

# ---- captum


class Toy(nn.Module):
    """relu(relu(x1 - 1) - relu(x2)), with a factor that comes beside the inputs."""

    def forward(self, a: Tensor, b: Tensor, factor: Tensor | float = 1.0) -> Tensor:
        return factor * torch.relu(torch.relu(a - 1) - torch.relu(b)).squeeze(1)


def test_attribute_has_the_shapes_and_numbers_of_explain() -> None:
    from gralis.interop.captum import Gralis

    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 3)).double().eval()
    inputs = torch.randn(4, 5, dtype=torch.float64)
    target = torch.tensor([0, 2, 1, 1])
    method = Gralis(model)
    result, delta = method.attribute(
        inputs, target=target, return_convergence_delta=True, plan="exhaustive", budget=None
    )
    alone = np.stack([explain(model, x, target=int(t)).values for x, t in zip(inputs, target, strict=True)])
    assert result.shape == inputs.shape
    assert result.dtype == inputs.dtype
    assert result.numpy() == pytest.approx(alone, abs=1e-9)
    moved = model(inputs).gather(1, target[:, None])[:, 0] - model(torch.zeros(1, 5, dtype=torch.float64))[0, target]
    assert delta.numpy() == pytest.approx((result.sum(1) - moved).detach().numpy(), abs=1e-6)
    assert len(method.explanations) == 4


def test_attribute_with_masks_tuples_and_baselines() -> None:
    from gralis.interop.captum import Gralis

    a, b = torch.tensor([[3.0], [2.0]]), torch.tensor([[1.0], [0.5]])
    result = Gralis(Toy().eval()).attribute((a, b), baselines=(torch.zeros(1, 1), 0.0))
    assert isinstance(result, tuple)
    assert [leaf.shape for leaf in result] == [a.shape, b.shape]
    per_row = Gralis(Toy().eval()).attribute((a, b), baselines=(torch.tensor([[0.0], [1.0]]), 0.0))
    expected = explain(Toy().eval(), (a[1], b[1]), baseline=(torch.ones(1), torch.zeros(1))).values
    assert [float(leaf[1, 0]) for leaf in per_row] == pytest.approx(expected, abs=1e-6)

    model = nn.Linear(4, 1).eval()
    mask = torch.tensor([[7, 7, 2, 2]])  # labels with gaps, a batch axis of one
    grouped = Gralis(model).attribute(torch.ones(3, 4), feature_mask=mask)
    weight = model.weight[0].detach()
    pairs = torch.stack([weight[:2].sum(), weight[:2].sum(), weight[2:].sum(), weight[2:].sum()])
    assert grouped.numpy() == pytest.approx(pairs.expand(3, 4).numpy(), abs=1e-5)
    by_features = Gralis(model).attribute(torch.ones(3, 4), features=gralis.features.groups([0, 0, 1, 1]))
    assert by_features.numpy() == pytest.approx(grouped.numpy(), abs=1e-6)


def test_attribute_with_additional_arguments_row_by_row() -> None:
    from gralis.interop.captum import Gralis

    a, b, factor = torch.tensor([[3.0], [3.0]]), torch.tensor([[1.0], [1.0]]), torch.tensor([1.0, 10.0])
    result = Gralis(Toy().eval()).attribute((a, b), additional_forward_args=(factor,))
    assert result[0][1, 0] == pytest.approx(10 * float(result[0][0, 0]), rel=1e-5)


@pytest.mark.parametrize(
    ("inputs", "options", "sentence"),
    [
        (torch.ones(3), {}, "batch axis"),
        (torch.ones(2, 3), {"target": [0, 1, 1]}, "one for each of 2"),
        (torch.ones(2, 3), {"baselines": torch.ones(5, 3)}, "baselines"),
    ],
)
def test_attribute_says_what_is_wrong(inputs: Tensor, options: dict, sentence: str) -> None:
    from gralis.interop.captum import Gralis

    with pytest.raises(GralisError, match=sentence):
        Gralis(nn.Linear(3, 2).eval()).attribute(inputs, **options)


# ---- shap


def test_shap_draws_it() -> None:
    shap = pytest.importorskip("shap")
    pytest.importorskip("matplotlib").use("Agg")
    features = gralis.features.columns(["age", "dose", "weight"])
    x = torch.tensor([2.0, -1.0, 0.5], dtype=torch.float64)
    result = explain(lambda z: torch.tanh(z).sum(1) + z[:, 0] * z[:, 1], x, features=features)
    theirs = result.to_shap()
    assert isinstance(theirs, shap.Explanation)
    assert theirs.values.tolist() == result.values.tolist()
    assert theirs.data.tolist() == x.tolist()
    assert list(theirs.feature_names) == ["age", "dose", "weight"]
    whole = result.to_shap(residual=True)
    assert whole.base_values + whole.values.sum() == pytest.approx(result.f_x)
    shap.plots.waterfall(whole, show=False)
    shap.plots.bar(theirs, show=False)


# ---- quantus


def test_the_function_that_quantus_calls() -> None:
    from gralis.interop.quantus import explain_func

    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.Flatten(), nn.Linear(144, 3)).eval()
    inputs = np.random.default_rng(0).standard_normal((2, 1, 8, 8)).astype(np.float32)
    result = explain_func(model, inputs, np.array([0, 2]), device="cpu", budget=500)
    assert result.shape == inputs.shape
    moved = model(torch.from_numpy(inputs)) - model(torch.zeros(1, 1, 8, 8))
    expected = moved[[0, 1], [0, 2]].detach().numpy()  # affine: the values sum to the difference
    assert result.sum((1, 2, 3)) == pytest.approx(expected, abs=1e-4)


def test_quantus_scores_it() -> None:
    quantus = pytest.importorskip("quantus")
    from gralis.interop.quantus import explain_func

    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.Flatten(), nn.Linear(144, 3)).eval()
    inputs = np.random.default_rng(0).standard_normal((2, 1, 8, 8)).astype(np.float32)
    metric = quantus.Sparseness(abs=True, normalise=True, disable_warnings=True, display_progressbar=False)
    scores = metric(
        model=model,
        x_batch=inputs,
        y_batch=np.array([0, 2]),
        explain_func=explain_func,
        explain_func_kwargs={"budget": 500},
        device="cpu",
    )
    assert len(scores) == 2
    assert all(0 <= score <= 1 for score in scores)


# ---- scikit-learn


def test_a_pipeline_with_text_columns() -> None:
    pandas = pytest.importorskip("pandas")
    sklearn_compose = pytest.importorskip("sklearn.compose")
    from sklearn.linear_model import LinearRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    from gralis.interop.sklearn import explain_row

    rng = np.random.default_rng(0)
    frame = pandas.DataFrame({"age": rng.integers(20, 70, 60), "city": rng.choice(["Rome", "Oslo"], 60)})
    y = 0.1 * frame["age"] + 3.0 * (frame["city"] == "Rome")
    encode = sklearn_compose.ColumnTransformer([("n", StandardScaler(), ["age"]), ("c", OneHotEncoder(), ["city"])])
    pipeline = make_pipeline(encode, LinearRegression()).fit(frame, y)
    result = explain_row(pipeline, frame.iloc[3], frame)
    row = frame.iloc[3]
    expected = [
        0.1 * (row["age"] - frame["age"].mean()),
        3 * ((row["city"] == "Rome") - (frame["city"] == "Rome").mean()),
    ]
    assert list(result.names) == ["age", "city"]
    assert result.values == pytest.approx(expected, abs=1e-6)
    with pytest.raises(GralisError, match="columns of the background"):
        explain_row(pipeline, frame.iloc[[3]][["age"]], frame)


# ---- notebooks


def test_a_notebook_shows_a_table_without_scripts() -> None:
    names = ["<img src=x onerror=alert(1)>", "b & c", "d"]
    features = gralis.features.columns(names)
    result = explain(lambda z: z.prod(1), torch.ones(3, dtype=torch.float64), features=features)
    html = result._repr_html_()
    assert "<img" not in html
    assert "&lt;img src=x onerror=alert(1)&gt;" in html
    assert "<script" not in html
    assert f"{result.values[0]:.4g}" in html


def test_charts_of_pairs_and_of_growth() -> None:
    pytest.importorskip("matplotlib")
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(10, 16), nn.Tanh(), nn.Linear(16, 1)).double().eval()
    result = explain(net, torch.linspace(-1, 1, 10, dtype=torch.float64), budget=400)
    steps = result.as_it_grew()
    assert steps[-1].values == pytest.approx(result.values, abs=1e-12)
    assert [step.ledger.n_replicates for step in steps] == sorted({step.ledger.n_replicates for step in steps})
    assert steps[0].stderr.mean() > steps[-1].stderr.mean()
    for kind in ("network", "convergence"):
        assert result.plot(kind).axes
    with pytest.raises(GralisError, match="three or more replicates"):
        explain(lambda z: z.sum(1), torch.ones(3)).plot("convergence")


# ---- the package


def test_importing_gralis_imports_no_neighbour_and_interop_works_after_it() -> None:
    program = """
import sys
import gralis
neighbours = {"captum", "shap", "quantus", "sklearn", "pandas"}
assert not neighbours & set(sys.modules), neighbours & set(sys.modules)
assert not [name for name in sys.modules if name.startswith("gralis.interop.")]
assert dir(gralis.interop) == ["captum", "quantus", "shap", "sklearn"]
assert gralis.interop.captum.Gralis
assert gralis.interop.quantus.explain_func
assert gralis.interop.shap.to_shap
assert gralis.interop.sklearn.explain_row
assert not neighbours & set(sys.modules), neighbours & set(sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_interop_names_what_it_has() -> None:
    with pytest.raises(AttributeError, match="'lime'; it has captum, quantus, shap, sklearn"):
        _ = gralis.interop.lime


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "shap", None)
    result = explain(lambda z: z.sum(1), torch.ones(2))
    with pytest.raises(GralisError, match=r'needs the package shap: pip install "gralis\[interop\]"'):
        gralis.interop.shap.to_shap(result)


def test_help_shows_the_options_of_explain() -> None:
    for function in (
        gralis.interop.captum.Gralis.attribute,
        gralis.interop.quantus.explain_func,
        gralis.interop.sklearn.explain_row,
    ):
        parameters = inspect.signature(function).parameters
        assert {"budget", "kernel", "seed"} <= set(parameters)
        assert "options" not in parameters
        for name in set(parameters) - {"self"}:
            assert f"\n{name} : " in inspect.getdoc(function), name
