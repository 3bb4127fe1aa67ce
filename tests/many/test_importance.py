"""global_importance against NumPy on all values at once, and against Sobol's closed form; sites against the pool."""

import itertools
import json

import numpy as np
import pytest
import torch
from scipy import stats
from torch import nn

import gralis
from gralis.errors import GralisError
from gralis.many.importance import Importance, global_importance

OPTIONS = {"budget": 40, "progress": False, "block_size": 4}


def network():
    torch.manual_seed(2)
    return nn.Sequential(nn.Linear(4, 5), nn.Softplus(), nn.Linear(5, 2)).eval()


def explained(net, x, folder, labels=None, **options):
    inputs = x if labels is None else [(row, int(label)) for row, label in zip(x, labels, strict=True)]
    return gralis.explain_many(net, inputs, out=folder, **{"target": 0, **OPTIONS, **options})


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    x = torch.randn(21, 4, generator=torch.Generator().manual_seed(1))
    labels = np.arange(21) % 3
    inputs = [(row, int(label)) for row, label in zip(x, labels, strict=True)]
    inputs[5] = (torch.full((4,), torch.nan), 2)
    folder = tmp_path_factory.mktemp("run")
    return gralis.explain_many(network(), inputs, out=folder, target=0, **OPTIONS), labels


def test_streamed_sums_are_the_numbers_of_the_whole_table(run):
    results, labels = run
    found = global_importance(results)
    phi = results.values_table()["phi"].to_numpy().reshape(20, 4)
    stderr = results.values_table()["stderr"].to_numpy().reshape(20, 4)
    rows = [row for row in results.inputs_table().to_pylist() if row["failure"] is None]
    f = np.array([row["f_x"] for row in rows])
    own = np.delete(labels, 5)
    assert found.n_inputs == 20
    assert found.mean == pytest.approx(phi.mean(0), rel=1e-12)
    assert found.mean_abs == pytest.approx(np.abs(phi).mean(0), rel=1e-12)
    assert found.variance == pytest.approx(phi.var(0, ddof=1), rel=1e-12)
    assert set(found.by_class) == {"0", "1", "2"}
    for k in range(3):
        assert found.by_class[str(k)] == pytest.approx(phi[own == k].mean(0), rel=1e-12)
        assert found.classes[str(k)].n == (own == k).sum()
    covariance = [np.cov(phi[:, i], phi.sum(1))[0, 1] for i in range(4)]
    assert found.within == pytest.approx(covariance / phi.sum(1).var(ddof=1), rel=1e-10)
    assert found.within.sum() == pytest.approx(1)
    assert found.alone == pytest.approx((phi.var(0, ddof=1) - (stderr**2).mean(0)) / f.var(ddof=1), rel=1e-10)
    assert "20 inputs, 4 features, 3 classes" in repr(found)
    assert set(global_importance(results, by="target").by_class) == {"output[0]"}


def test_sites_that_merge_their_sums_have_the_pool(tmp_path):
    """Three sites of different sizes and different inputs; only files with sums travel."""
    net = network()
    x = torch.randn(26, 4, generator=torch.Generator().manual_seed(4)) * torch.tensor([1.0, 5.0, 0.1, 2.0]) + 3
    labels = np.arange(26) % 2
    cuts = {"a": slice(0, 6), "b": slice(6, 17), "c": slice(17, 26)}
    sent = []
    for name, cut in cuts.items():
        own = global_importance(explained(net, x[cut], tmp_path / name, labels[cut]))
        sent.append(Importance.load(own.save(tmp_path / f"{name}.json", least=2)))
    merged = sent[2].merge(sent[0]).merge(sent[1])
    folders = [str(tmp_path / name) for name in cuts]
    pooled = global_importance(folders)
    phi = np.concatenate([gralis.many.Results(f).values_table()["phi"].to_numpy().reshape(-1, 4) for f in folders])
    for found in (merged, pooled):
        assert found.n_inputs == 26
        assert found.mean == pytest.approx(phi.mean(0), rel=1e-12)
        assert found.variance == pytest.approx(phi.var(0, ddof=1), rel=1e-11)
        assert found.by_class["1"] == pytest.approx(phi[labels == 1].mean(0), rel=1e-12)
    assert merged.alone == pytest.approx(pooled.alone, rel=1e-10)
    assert merged.within == pytest.approx(pooled.within, rel=1e-10)


def test_an_additive_model_has_sobol_indices(tmp_path):
    """F = sum a_i x_i with independent x_i: S_i = a_i^2 Var x_i / sum, exactly on a full factorial design."""
    a = torch.tensor([1.0, -2.0, 0.5])
    grid = torch.cartesian_prod(*[torch.tensor([-1.0, 0.0, 1.0])] * 3)
    found = gralis.explain_many(
        lambda z: z @ a, list(grid), baseline=torch.zeros(3) + 1e-9, out=tmp_path, budget=40, progress=False
    )
    summary = global_importance(found)
    assert summary.alone == pytest.approx((a**2 / (a**2).sum()).numpy(), abs=1e-6)
    assert summary.within == pytest.approx((a**2 / (a**2).sum()).numpy(), abs=1e-6)


def test_what_would_tell_of_a_single_input_is_not_sent(tmp_path):
    found = global_importance(explained(network(), torch.randn(7, 4), tmp_path / "run", [0, 0, 0, 0, 0, 0, 1]))
    path = found.save(tmp_path / "sums.json")
    assert set(json.loads(path.read_text())["classes"]) == {"0"}
    assert Importance.load(path).n_inputs == 6  # with all 7, the seventh were 7 means - 6 means
    few = global_importance(explained(network(), torch.randn(3, 4), tmp_path / "few"))
    with pytest.raises(GralisError, match="fewer than least=5"):
        few.save(tmp_path / "few.json")


@pytest.mark.parametrize("labels", ["0000011", "00000111112222", "0000011112222", "000001..", "00000.....1", "00000"])
def test_no_group_of_fewer_than_five_comes_out_by_subtraction(tmp_path, labels):
    """Everything that sums and differences of the groups in a file can give is over nobody, or over five at least."""
    x = torch.randn(len(labels), 4, generator=torch.Generator().manual_seed(9))
    inputs = [row if label == "." else (row, label) for row, label in zip(x, labels, strict=True)]
    found = global_importance(gralis.explain_many(network(), inputs, out=tmp_path / "run", target=0, **OPTIONS))
    assert found.n_inputs == len(labels)
    sent = Importance.load(found.save(tmp_path / "sums.json"))
    groups = list(sent.classes.values())
    for chosen in itertools.product([0, 1], repeat=len(groups)):
        left = sent.n_inputs - sum(keep * group.n for keep, group in zip(chosen, groups, strict=True))
        assert left == 0 or left >= 5
    phi = np.stack(list(found_values(tmp_path / "run").values()))
    rest = sent.n_inputs * sent.mean - sum(group.n * group.mean for group in groups)  # the attack
    hidden = [k for k, label in enumerate(labels) if label not in sent.classes]
    assert set(sent.classes) == {label for label in labels if label != "." and labels.count(label) >= 5}
    expected = phi[hidden].sum(0) if len(hidden) >= 5 else np.zeros(4)
    assert rest == pytest.approx(expected, abs=1e-9)


def found_values(folder):
    table, found = gralis.many.Results(folder).values_table().to_pydict(), {}
    for name, value in zip(table["input"], table["phi"], strict=True):
        found.setdefault(name, []).append(value)
    return found


def test_bad_ways_to_save_and_merge_are_one_sentence(run, tmp_path):
    found = global_importance(run[0])
    for call, sentence in (
        (lambda: found.save(tmp_path / "absent" / "sums.json"), "absent does not exist"),
        (lambda: found.save(tmp_path / "sums.json", least="a"), "'least' parameter"),
        (lambda: found.save(tmp_path / "sums.json", least=0), "'least' parameter"),
        (lambda: found.merge(3), "'other' parameter of Importance.merge"),
    ):
        with pytest.raises(GralisError, match=sentence):
            call()
    assert not list(tmp_path.iterdir())


def test_bad_sums_and_features_that_differ_are_one_sentence(run, tmp_path):
    with pytest.raises(GralisError, match="one of 'label', 'target'"):
        global_importance(run[0], by="name")
    with pytest.raises(GralisError, match="'results' parameter"):
        global_importance(3)
    path = global_importance(run[0]).save(tmp_path / "sums.json")
    known = json.loads(path.read_text())
    for change in (
        {"schema": "gralis.importance/9"},
        {"names": ["a"]},
        {"classes": 3},
        {"everyone": {**known["everyone"], "mean": [1, 2]}},
        {"everyone": {**known["everyone"], "n": -1}},
        {"everyone": {**known["everyone"], "n": True}},
        {"everyone": {**known["everyone"], "n": 6}},  # fewer than in the classes
        {"everyone": {**known["everyone"], "squares": [-1, 1, 1, 1]}},
        {"everyone": {**known["everyone"], "f_squares": -1.0}},
        {"everyone": {**known["everyone"], "f_mean": "high"}},
    ):
        path.write_text(json.dumps({**known, **change}))
        with pytest.raises(GralisError, match=r"sums\.json"):
            Importance.load(path)
    mixed = [torch.ones(3), torch.ones(4)]
    found = gralis.explain_many(lambda z: z.sum(1), mixed, out=tmp_path / "mixed", budget=40)
    with pytest.raises(GralisError, match="different features"):
        global_importance(found)


def test_intervals_of_the_means_are_students_and_cover_the_population(run, tmp_path):
    """F linear in exponential inputs: phi_i = a_i x_i, so mean |phi_i| = |a_i| over the population."""
    results, _ = run
    found = global_importance(results)
    phi = results.values_table()["phi"].to_numpy().reshape(20, 4)
    own = np.sqrt((results.values_table()["stderr"].to_numpy().reshape(20, 4) ** 2).mean(0))
    for kind, numbers in (("mean", phi), ("mean_abs", np.abs(phi))):
        low, high = stats.t.interval(0.9, 19 / 4, numbers.mean(0), numbers.std(0, ddof=1) / np.sqrt(20))
        assert found.half_widths(0.9, simultaneous=False)[kind] == pytest.approx((high - low) / 2 + own, rel=1e-9)
        assert (found.half_widths(0.9)[kind] > found.half_widths(0.9, simultaneous=False)[kind]).all()
    assert "+-" in repr(found)
    a, held = torch.tensor([1.0, -2.0, 0.5]), 0
    for seed in range(4):
        x = torch.empty(40, 3, dtype=torch.float64).exponential_(generator=torch.Generator().manual_seed(seed))
        sample = gralis.explain_many(
            lambda z: z @ a.to(z), list(x), out=tmp_path / str(seed), budget=40, progress=False
        )
        summary = global_importance(sample)
        half = summary.half_widths()
        held += bool((np.abs(summary.mean_abs - a.abs().numpy()) <= half["mean_abs"]).all())
        held += bool((np.abs(summary.mean - a.numpy()) <= half["mean"]).all())
    assert held >= 7
    with pytest.raises(GralisError, match="'level'"):
        found.half_widths(95)
    single = global_importance(
        gralis.explain_many(lambda z: z.sum(1), torch.ones(1, 2), out=tmp_path / "one", budget=40)
    )
    assert np.isnan(single.half_widths()["mean"]).all()
