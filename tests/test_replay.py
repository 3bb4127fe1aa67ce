"""Replay: the same model gives the same numbers, whatever was done to the explanation; another one is told apart."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch

import gralis
import gralis.kernels.stored
import gralis.plans.registry
from artificial_clock import ArtificialClock
from gralis import targets
from gralis.errors import GralisError


def network(seed: int = 0, n: int = 6, outputs: int = 3) -> torch.nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return torch.nn.Sequential(torch.nn.Linear(n, 8), torch.nn.Tanh(), torch.nn.Linear(8, outputs)).eval()


X = torch.linspace(-1, 2, 6)


def saved(explanation: gralis.Explanation, folder) -> gralis.Explanation:
    return gralis.load(explanation.save(folder / "why.gralis"))


@pytest.mark.parametrize(
    "options",
    [
        {"target": 1},
        {"target": targets.margin(2, against=0), "budget": 200, "seed": 7},
        {"target": 2, "plan": "permutation", "budget": 700},
        {"target": 2, "plan": gralis.plans.permutation(4, antithetic=False), "n_nodes": 3},
        {"target": 0, "plan": gralis.plans.permutation(orders=np.array([[5, 4, 3, 2, 1, 0], [0, 1, 2, 3, 4, 5]]))},
        {"target": 0, "plan": "independent", "kernel": gralis.Uniform(), "replicates": 8},
        {"target": 0, "plan": "endpoint", "budget": 100},
        {"target": 0, "plan": "values", "budget": 40},
        {"target": 1, "plan": "exhaustive", "budget": None, "quadrature": "midpoint"},
        {"target": 1, "tolerance": 0.5, "budget": 400},
        {"target": 1, "max_seconds": 1000.0, "budget": 300},
        {"target": 1, "kernel": gralis.SizeKernel(lambda size: 0.5**size), "budget": 200},
        {"target": 1, "budget": 200, "coalition_values": False},
        {"target": 1, "baseline": gralis.baselines.sample(np.random.default_rng(0).normal(size=(9, 6)), 3)},
    ],
)
def test_the_same_model_gives_the_same_numbers_from_the_file_alone(options, tmp_path) -> None:
    options = {"budget": 300, **options}
    explanation = saved(gralis.explain(network(), X, **options), tmp_path)
    found = gralis.replay(explanation, network())
    assert found.same, found
    assert found.explanation.plan == explanation.plan
    assert np.allclose(found.explanation.values, explanation.values, atol=1e-6)
    assert repr(found).startswith(f"Same: all {1 + len(explanation.f_baselines) + 6} numbers agree within")


def test_another_model_is_told_by_its_hash_and_by_the_numbers_that_moved() -> None:
    model = torch.nn.Linear(3, 1, bias=False).double().eval()
    with torch.no_grad():
        model.weight[:] = torch.tensor([[1.0, 2.0, 3.0]])
    explanation = gralis.explain(model, torch.ones(3, dtype=torch.float64))
    with torch.no_grad():
        model.weight[0, 1] = 2.5
    found = gralis.replay(explanation, model)
    assert not found.same
    assert found.hashes == ("model",)
    # F(x) and phi of the second feature, each half a unit up; nothing else moved.
    assert {d.name: (round(d.then, 9), round(d.now, 9)) for d in found.differences} == {
        "F(x)": (6.0, 6.5),
        "phi of x[1]": (2.0, 2.5),
    }
    assert "the hash of the model differs, 2 of 5 numbers differ, most of all: " in repr(found)
    assert "(off by 0.5, 6e-09 allowed)" in repr(found)
    assert gralis.replay(explanation, model, tolerance=0.1).differences == ()


@pytest.mark.parametrize("part", ["input", "baseline", "features"])
def test_an_altered_part_of_the_file_is_named(part) -> None:
    explanation = gralis.explain(network(), X, target=1, budget=200)
    ends = explanation.endpoints
    if part == "features":
        labels = explanation.features.labels[0][::-1].copy()
        altered = replace(explanation, features=gralis.features.groups(labels))
    elif part == "input":
        altered = replace(explanation, endpoints=replace(ends, x=(ends.x[0] + 1,)))
    else:
        altered = replace(explanation, endpoints=replace(ends, baselines=(ends.baselines[0] - 1,)))
    found = gralis.replay(altered, network())
    assert found.hashes == (part,)
    assert f"Different: the hash of the {part} differs" in repr(found)


def test_what_was_extended_or_weighed_again_is_taken_through_the_same_steps(tmp_path) -> None:
    first = gralis.explain(network(), X, target=1, budget=200)
    longer = first.extend(300)
    assert longer.ledger.n_replicates > first.ledger.n_replicates
    assert gralis.replay(saved(longer, tmp_path), network()).same
    assert gralis.replay(saved(first.with_kernel(gralis.Gaussian(1.5)), tmp_path), network()).same
    midpoints = gralis.explain(network(), X, target=1, budget=None, quadrature="midpoint", n_nodes=9, plan="exhaustive")
    assert gralis.replay(saved(midpoints.with_nodes(3), tmp_path), network()).same


def test_a_stopped_run_is_evaluated_on_its_own_rays(tmp_path, monkeypatch) -> None:
    clock, net = ArtificialClock(monkeypatch), network()
    handle = net.register_forward_pre_hook(lambda module, points: setattr(clock, "seconds", clock.seconds + 1.0))
    explanation = gralis.explain(net, X, target=1, budget=400, max_seconds=40.0, batch_size=8)
    handle.remove()
    assert not explanation.complete
    loaded = saved(explanation, tmp_path)
    found = gralis.replay(loaded, network())
    assert found.same
    assert "stopped early" in repr(found)
    assert gralis.replay(loaded, network(seed=1)).hashes == ("model",)


def test_a_folded_ledger_can_be_replayed(tmp_path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        explanation = gralis.explain(lambda z: (z**2).sum(1), torch.ones(1200, dtype=torch.float64), budget=8000)
    assert isinstance(explanation.ledger, gralis.ledger.FoldedLedger)
    loaded = saved(explanation, tmp_path)
    found = gralis.replay(loaded, lambda z: (z**2).sum(1))
    assert found.differences == ()


def test_several_leaves_and_narrow_numbers_come_back_as_they_were(tmp_path) -> None:
    pair = {"a": torch.ones(2), "b": torch.full((3,), 2.0)}

    class Two(torch.nn.Module):
        def forward(self, a, b):
            return (a.sum(1) * b.sum(1)).tanh()

    assert gralis.replay(saved(gralis.explain(Two().eval(), pair), tmp_path), Two().eval()).same
    wide = gralis.explain(lambda z: z.prod(1), X, dtype=torch.float64)
    again = gralis.replay(saved(wide, tmp_path), lambda z: z.prod(1))
    assert again.explanation.provenance["dtype"] == "float64"
    assert again.differences == ()
    narrow = gralis.explain(network().to(torch.bfloat16), X.to(torch.bfloat16), target=0, budget=200)
    assert gralis.replay(saved(narrow, tmp_path), network().to(torch.bfloat16)).hashes == ()


def test_functions_that_a_file_cannot_hold_are_asked_for(tmp_path) -> None:
    def first(outputs):
        return outputs[:, 0]

    explanation = saved(gralis.explain(network(), X, target=first, budget=200), tmp_path)
    with pytest.raises(GralisError, match="give it again as target"):
        gralis.replay(explanation, network())
    assert gralis.replay(explanation, network(), target=first).same
    assert gralis.replay(explanation, network(), target="0").same

    def by_mask(masks):
        return 1.0 / (1 + masks.sum(1))

    explanation = saved(gralis.explain(network(), X, target=0, kernel=by_mask), tmp_path)
    with pytest.raises(GralisError, match="give it again as kernel"):
        gralis.replay(explanation, network())
    assert gralis.replay(explanation, network(), kernel=gralis.kernels.MaskKernel(by_mask)).same


def test_a_layer_needs_the_input_of_the_model(tmp_path) -> None:
    explanation = saved(gralis.explain(network(), X, target=1, layer="0", budget=300), tmp_path)
    assert explanation.provenance["layer"] == "0"
    with pytest.raises(GralisError, match="layer 0 was explained"):
        gralis.replay(explanation, network())
    assert gralis.replay(explanation, network(), x=X).same
    moved = gralis.replay(explanation, network(), x=X + 1)
    assert [d.name for d in moved.differences] == ["the layer's output"]
    with pytest.raises(GralisError, match="left out"):
        gralis.replay(gralis.explain(network(), X, target=1, budget=200), network(), x=X)


@pytest.mark.parametrize(
    "target",
    [None, 3, -1, (1, 0), targets.logit(2), targets.probability(0), targets.log_odds(1), targets.margin(2, against=5)],
)
def test_a_target_is_read_back_from_its_words(target) -> None:
    assert targets.parse(targets.describe(target)) == target


@pytest.mark.parametrize("words", ["", "first", "output[a]", "logit(1, against=2)", "margin()", "__import__('os')"])
def test_words_that_name_no_target_are_refused(words) -> None:
    with pytest.raises(GralisError, match="'target' parameter"):
        targets.parse(words)


def test_bad_arguments_get_a_sentence() -> None:
    with pytest.raises(GralisError, match="'explanation' parameter of replay"):
        gralis.replay("why.gralis", network())
    with pytest.raises(GralisError, match="'tolerance' parameter of replay"):
        gralis.replay(gralis.explain(network(), X, target=1, budget=200), network(), tolerance=-1)


def test_one_of_several_questions_is_replayed_on_its_own_rays() -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(9, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3)).eval()
    xs = torch.randn(2, 9, generator=torch.Generator().manual_seed(1))
    one_target = gralis.explain(model, xs[0], target=[0, 2], budget=600)[1]
    one_input = gralis.explain_batch(model, xs, target=1, budget=300)[1]
    for explanation in (one_target, one_input):
        again = gralis.replay(explanation, model)
        assert again.same
        assert "several questions" in repr(again)


@pytest.mark.parametrize(
    "kernel",
    [
        gralis.Gaussian(1.5),
        gralis.Gaussian(2.0, "euclidean"),
        gralis.Uniform(),
        gralis.SizeKernel(lambda size: 0.5**size),
    ],
)
def test_files_that_hold_the_repr_of_a_kernel_are_still_replayed(kernel, tmp_path) -> None:
    """Older files name kernels by their repr."""
    first = gralis.explain(network(), X, target=1, kernel=kernel, budget=200)
    named = replace(first, provenance={**first.provenance, "kernels": [repr(kernel)]})
    assert gralis.replay(saved(named, tmp_path), network()).same
    if not isinstance(kernel, gralis.SizeKernel):  # the rays were drawn under the kernel of the provenance
        again = gralis.replay(saved(named.with_kernel(gralis.Gaussian(0.9)), tmp_path), network())
        assert again.same
        assert again.explanation.kernel == gralis.Gaussian(0.9)


def test_a_registered_kernel_and_a_registered_plan_come_back_from_the_file(tmp_path) -> None:
    gralis.kernels.register("sharper", Sharper)
    gralis.plans.register("cautious", Cautious)
    explanation = gralis.explain(network(), X, target=1, kernel=Sharper(0.75), plan="cautious", budget=200)
    assert explanation.provenance["plan"] == "cautious"
    assert gralis.replay(saved(explanation, tmp_path), network()).same


@dataclass(frozen=True)
class Sharper(gralis.Gaussian):
    """A kernel from outside."""

    power: float = 2.0

    def log_p(self, squared_distance):
        return self.power * super().log_p(squared_distance)


class Cautious(type(gralis.plans.shared())):
    """A plan from outside."""

    name = "cautious"


def test_a_plan_that_is_not_registered_cannot_be_made_again() -> None:
    explanation = gralis.explain(network(), X, target=1, budget=200)
    foreign = replace(explanation, provenance={**explanation.provenance, "plan": "mine"})
    with pytest.raises(GralisError, match="'mine' is none of"):
        gralis.replay(foreign, network())
