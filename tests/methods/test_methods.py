"""Every method: one signature, the planted region ranked first, the known answers met, the model unchanged."""

import inspect

import numpy as np
import pytest
import torch
from torch import nn

from gralis import BudgetError, GralisError, Uniform, explain, features, methods
from gralis.baselines import sample
from gralis.methods import FROM_LEDGER, METHODS, run
from untouched import untouched

PLANTED = 6  # of the 3 x 3 regions of a 12 x 12 image


class Planted(nn.Module):
    """A convnet that sees one region only: a gate lets nothing else through."""

    def __init__(self, region: int) -> None:
        super().__init__()
        gate = torch.from_numpy(features.grid((1, 12, 12), 4).labels[0] == region).double()
        self.register_buffer("gate", gate)
        self.conv = nn.Conv2d(1, 3, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(3)
        self.act = nn.ReLU(inplace=True)
        self.head = nn.Linear(3, 2, bias=False)
        with torch.no_grad():  # bright is class 1
            self.conv.weight.fill_(0.2)
            self.head.weight.copy_(torch.tensor([[-1.0] * 3, [1.0] * 3]))

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return self.head(self.act(self.norm(self.conv(image * self.gate))).mean((2, 3)))


@pytest.fixture
def planted() -> tuple[Planted, torch.Tensor, features.Features]:
    x = torch.rand(1, 12, 12, generator=torch.Generator().manual_seed(0)).double() + 0.5
    return Planted(PLANTED).double().eval(), x, features.grid(x.shape, 4)


def test_all_methods_have_one_signature() -> None:
    common = list(inspect.signature(methods.occlusion).parameters.items())
    for name, method in METHODS.items():
        own = dict(inspect.signature(method).parameters)
        for parameter, wanted in common:
            assert own[parameter] == wanted, f"{parameter} of {name}"
        assert all(own[extra].default is not inspect.Parameter.empty for extra in own.keys() - dict(common).keys())
        assert getattr(methods, name) is method


def test_every_faithful_method_ranks_the_planted_region_first_and_chance_does_not(planted) -> None:
    model, x, regions = planted
    with untouched(model):
        attributions = run(METHODS, model, x, target=1, features=regions, budget=400, seed=3)
    assert list(attributions) == list(METHODS)
    for name, attribution in attributions.items():
        assert attribution.values.shape == (9,)
        assert attribution.to_input().shape == x.shape
        assert list(attribution.names) == list(regions.names)
        assert attribution.delta == pytest.approx((model(x[None]) - model(0 * x[None]))[0, 1].item())
        assert (attribution.values.argmax() == PLANTED) == (name != "random"), name


def test_each_method_alone_agrees_with_the_shared_ledger(planted) -> None:
    model, x, regions = planted
    options = {"target": 1, "features": regions, "budget": 3000, "seed": 1}
    together = run(METHODS, model, x, **options)
    for name, method in METHODS.items():
        alone = method(model, x, **options)
        assert alone.values == pytest.approx(together[name].values, abs=0.02 * abs(alone.delta)), name
        assert alone.features.fingerprint() == regions.fingerprint()


class Counted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rows, self.weight = 0, nn.Parameter(torch.arange(1.0, 9.0).double())

    def forward(self, z: torch.Tensor) -> torch.Tensor:
        self.rows += len(z)
        return torch.tanh(z @ self.weight / 10) + z[:, 0] * z[:, 3]


def test_methods_of_the_ledger_do_not_call_the_model_again() -> None:
    model, x = Counted(), torch.linspace(0.2, 1, 8).double()
    model.eval()
    ledger = explain(model, x, plan="exhaustive", budget=None)
    spent = model.rows
    for name in sorted(FROM_LEDGER):
        METHODS[name](model, x, ledger=ledger)
    assert model.rows == spent
    assert METHODS["gralis"](model, x, ledger=ledger).values == pytest.approx(ledger.values)
    uniform = ledger.with_kernel(Uniform()).values
    assert METHODS["gralis_uniform"](model, x, ledger=ledger).values == pytest.approx(uniform)
    assert np.abs(uniform - ledger.values).max() > 1e-3


def test_a_ledger_of_something_else_is_refused() -> None:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        net, other = (nn.Sequential(nn.Conv2d(1, 2, 2), nn.Flatten(), nn.Linear(18, 3)).eval() for _ in range(2))
    x = torch.ones(1, 4, 4)
    asked = {"model": net, "x": x, "target": 0, "baseline": 0.0, "features": features.grid(x.shape, 2)}
    ledger = explain(**asked)
    wrong = {"x": 2 * x, "features": features.grid(x.shape, 4), "baseline": 0.7, "target": 2, "model": other}
    for method in ("singles", "kernel_shap", "gralis", "gradcam"):
        METHODS[method](**asked, ledger=ledger)
        for name, value in wrong.items():
            with pytest.raises(GralisError, match=rf"'ledger' .* the same {name}\."):
                METHODS[method](**{**asked, name: value}, ledger=ledger)
    for method in METHODS.values():
        with pytest.raises(GralisError, match=r"'ledger' .* an Explanation.* Got 'a'"):
            method(**asked, ledger="a")


def test_an_unknown_keyword_is_a_type_error_of_the_function_called() -> None:
    f, x = (lambda z: z.sum(1)), np.ones(3)
    for name, method in METHODS.items():
        with pytest.raises(TypeError, match=rf"^{name}\(\) has no parameter 'bugdet'; .*budget"):
            method(f, x, bugdet=3)
    with pytest.raises(TypeError, match=r"^lime\(\) .*ridge"):
        methods.lime(f, x, rigde=3)
    with pytest.raises(TypeError, match=r"^run\(\) .*kernel"):
        run(["random"], f, x, kernl=3)


def test_a_bad_seed_budget_or_batch_is_a_sentence_of_its_method() -> None:
    f, x = (lambda z: z.sum(1)), np.ones(3)
    for wrong in ({"seed": -1}, {"batch_size": 0}, {"budget": 0}):
        for name in ("random", "occlusion", "integrated_gradients", "gralis"):
            with pytest.raises(GralisError, match=rf"'{next(iter(wrong))}' parameter of {name} must be a whole number"):
                METHODS[name](f, x, **wrong)
    with pytest.raises(GralisError, match="'n_nodes' parameter of integrated_gradients"):
        methods.integrated_gradients(f, x, n_nodes=0)


def test_occlusion_by_hand() -> None:
    x, base = np.array([2.0, 3.0, 5.0]), np.array([1.0, 0.0, 1.0])
    attribution = methods.occlusion(lambda z: z[:, 0] * z[:, 1] - z[:, 2], x, baseline=base, features=[0, 0, 1])
    assert attribution.values.tolist() == [6.0, -4.0]
    assert attribution.exact
    assert attribution.delta == 6 - 5 - (0 - 1)


def test_occlusion_averages_over_baselines_and_says_what_it_takes() -> None:
    x, rows = np.array([2.0, 3.0]), np.array([[0.0, 0.0], [1.0, 1.0]])
    attribution = methods.occlusion(lambda z: z[:, 0] * z[:, 1], x, baseline=sample(rows))
    assert attribution.values.tolist() == [(6 + 3) / 2, (6 + 4) / 2]
    with pytest.raises(BudgetError, match=r"4 here, and budget=3"):
        methods.occlusion(lambda z: z[:, 0] * z[:, 1], x, baseline=sample(rows), budget=3)


def test_integrated_gradients_against_captum() -> None:
    attr = pytest.importorskip("captum.attr")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(6, 10), nn.Tanh(), nn.Linear(10, 3)).double().eval()
    rng = torch.Generator().manual_seed(2)
    x, base = (torch.randn(6, generator=rng, dtype=torch.float64) for _ in range(2))
    theirs = attr.IntegratedGradients(net).attribute(
        x[None], base[None], target=1, n_steps=400, method="gausslegendre"
    )[0]
    ours = methods.integrated_gradients(net, x, target=1, baseline=base, n_nodes=400)
    assert ours.values == pytest.approx(theirs.detach().numpy(), abs=1e-5)
    pairs = methods.integrated_gradients(net, x, target=1, baseline=base, n_nodes=400, features=[0, 0, 1, 1, 2, 2])
    assert pairs.values == pytest.approx(theirs.detach().numpy().reshape(3, 2).sum(1), abs=1e-5)


def test_integrated_gradients_keep_to_the_budget_and_average_over_baselines() -> None:
    model = Counted().eval()
    x, rows = torch.ones(8).double(), np.stack([np.zeros(8), np.full(8, 0.5)])
    attribution = methods.integrated_gradients(model, x, baseline=sample(rows), budget=20)
    assert model.rows == 20 + 3  # ten nodes for each baseline; F(x) and both F(x')
    each = [methods.integrated_gradients(model, x, baseline=row, n_nodes=10).values for row in rows]
    assert attribution.values == pytest.approx(np.mean(each, axis=0))


def test_random_depends_on_the_seed_alone() -> None:
    f, x = (lambda z: z.sum(1)), np.ones(5)
    one, same, other = (methods.random(f, x, seed=seed).values for seed in (4, 4, 5))
    assert one.tolist() == same.tolist() != other.tolist()
    assert methods.random(lambda z: z[:, 0] ** 2, 3 * x, seed=4).values.tolist() == one.tolist()


def test_run_names_what_there_is_and_passes_options() -> None:
    f, x = (lambda z: z[:, 0] * z[:, 1]), np.array([1.0, 2.0])
    with pytest.raises(GralisError, match=r"made of 'gralis', .* Got 'ocluson' instead"):
        run(["ocluson"], f, x)
    coarse = run(["integrated_gradients"], f, x, options={"integrated_gradients": {"n_nodes": 3}})
    assert coarse["integrated_gradients"].note == "3 nodes"
    assert run("gralis", f, x, kernel=Uniform())["gralis"].note == repr(Uniform())


def test_several_targets_are_for_explain() -> None:
    f, x = (lambda z: torch.stack([z.sum(1), z.prod(1)], 1)), torch.ones(3)
    for name in ("occlusion", "random", "integrated_gradients", "gralis", "lime"):
        with pytest.raises(GralisError, match=r"'target' parameter of a method must be None, an int"):
            METHODS[name](f, x, target=[0, 1])  # type: ignore[arg-type]


def test_methods_read_the_closed_form_of_trees_and_refuse_that_of_other_trees():
    ensemble = pytest.importorskip("sklearn.ensemble")
    rng = np.random.default_rng(0)
    rows, truth = rng.standard_normal((80, 4)), rng.random(80)
    forest, other = (
        ensemble.RandomForestRegressor(5, max_depth=3, random_state=seed).fit(rows, truth) for seed in (0, 1)
    )
    background = sample(rows[:6])
    ledger = explain(forest, rows[0], baseline=background)
    assert ledger.plan["name"] == "trees"
    found = methods.run(["gralis", "gralis_uniform"], forest, rows[0], baseline=background, ledger=ledger)
    assert np.array_equal(found["gralis"].values, ledger.values)
    uniform = explain(forest, rows[0], baseline=background, kernel=Uniform())
    assert np.allclose(found["gralis_uniform"].values, uniform.values, rtol=0, atol=1e-12)
    with pytest.raises(GralisError, match="an explanation of the same model"):
        methods.run(["gralis"], other, rows[0], baseline=background, ledger=ledger)
