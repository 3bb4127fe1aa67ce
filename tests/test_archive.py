"""Saving and loading: the explanation comes back bit for bit, and whatever is not one gets a sentence."""

from __future__ import annotations

import json
import math
import pickle
import zipfile
from dataclasses import asdict, replace
from functools import cache

import numpy as np
import pytest
import torch

import gralis
from gralis.errors import GralisError
from gralis.features.coordinate_names import CoordinateNames
from gralis.files.archive import load, save
from gralis.kernels import Gaussian, MaskKernel, SizeKernel, TableOfSizes, Uniform, UnsavedKernel
from gralis.ledger import FoldedLedger
from gralis.results.explanation import Explanation
from gralis.storage import container
from gralis.storage.container import write_arrays

N = 6


def curved(z: torch.Tensor) -> torch.Tensor:
    slopes = torch.linspace(-1, 1, z.shape[1], dtype=z.dtype)
    return torch.sin(z @ slopes) + z[:, 0] * z[:, 1] ** 2


def explained(**options) -> Explanation:
    x = torch.linspace(0.5, 1.5, N, dtype=torch.float64)
    return gralis.explain(curved, x, **{"plan": "independent", "budget": 96, **options})


@cache
def an_explanation() -> Explanation:
    return explained()


def folded(monkeypatch, **options) -> Explanation:
    monkeypatch.setattr("gralis.run.settings._KEEP_BYTES", 1)
    explanation = explained(**options)
    assert isinstance(explanation.ledger, FoldedLedger)
    return explanation


def same_bits(a, b) -> bool:
    """Equal in shape, type and every bit: NaN equals itself, 0.0 does not equal -0.0."""
    a, b = np.asarray(a), np.asarray(b)
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def rewritten(path, **changes) -> None:
    """The file with other meta: whole as a zip, but no longer what `save` wrote."""
    with zipfile.ZipFile(path) as old:
        members = {name: old.read(name) for name in old.namelist()}
    meta = json.loads(members["meta.json"]) | changes
    members["meta.json"] = json.dumps({k: v for k, v in meta.items() if v != "absent"}).encode()
    with zipfile.ZipFile(path, "w") as new:
        for name, blob in members.items():
            new.writestr(name, blob)


# --- there and back --------------------------------------------------------------------------------------------------

PLANS = {
    "exhaustive": {"plan": "exhaustive", "budget": None},
    "permutation": {"plan": "permutation", "budget": 400},
    "independent": {"plan": "independent"},
    "shared": {"plan": "shared", "budget": 60},  # too few for all rays
    "endpoint": {"plan": "endpoint", "budget": 50},
    "euclidean": {"kernel": Gaussian(1, "euclidean")},
    "uniform": {"kernel": Uniform()},
    "tolerance": {"plan": "independent", "tolerance": 5.0},
    "no values": {"coalition_values": False},  # NaN in the ledger
}


@pytest.mark.parametrize("name", PLANS)
def test_everything_comes_back_bit_for_bit(name, tmp_path) -> None:
    before = explained(**PLANS[name])
    path = before.save(tmp_path / "why.gralis")
    after = load(path)
    assert path == tmp_path / "why.gralis"
    for field in ("values", "stderr", "f_baselines", "baseline_weights", "squared_distance"):
        assert same_bits(getattr(after, field), getattr(before, field)), field
    assert same_bits(after.estimate.departures, before.estimate.departures)
    for column, rows in before.ledger.arrays().items():
        assert same_bits(after.ledger.arrays()[column], rows), column
    for field in ("kernel", "f_x", "delta", "cost", "plan", "provenance", "complete", "reached", "form", "method"):
        assert getattr(after, field) == getattr(before, field), field
    assert after.estimate.exact == before.estimate.exact
    assert repr(after) == repr(before)
    assert same_bits(after.interval(0.9), before.interval(0.9))


@pytest.mark.parametrize("name", ["exhaustive", "permutation", "independent", "shared", "endpoint"])
def test_a_loaded_ledger_gives_the_same_numbers_under_other_kernels(name, tmp_path) -> None:
    before = explained(**PLANS[name])
    after = load(before.save(tmp_path / "why.gralis"))
    kernel = Gaussian(1.5, "euclidean")
    assert same_bits(after.with_kernel(kernel).values, before.with_kernel(kernel).values)
    assert not same_bits(after.with_kernel(kernel).values, after.values)
    old, new = before.sweep([0.3, 1.0, math.inf]), after.sweep([0.3, 1.0, math.inf])
    assert same_bits(new.values, old.values)
    assert same_bits(new.stderr, old.stderr)
    assert repr(new) == repr(old)
    if name != "permutation":
        assert same_bits(after.effective_rays, before.effective_rays)


def test_saving_a_loaded_explanation_over_its_own_file_changes_no_byte(tmp_path) -> None:
    path = an_explanation().save(tmp_path / "why.gralis")
    written = path.read_bytes()
    loaded = load(path)
    assert loaded.save(path) == path
    assert path.read_bytes() == written
    assert same_bits(load(path).ledger.gradient, loaded.ledger.gradient)


def test_the_ledger_of_a_large_file_stays_on_disk_and_the_rest_is_ones_own(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(container, "_WHOLE", 0)
    after = load(an_explanation().save(tmp_path / "why.gralis"))
    assert isinstance(after.ledger.gradient, np.memmap)
    after.values[0] = 7.0
    assert after.values[0] == 7.0
    assert load(tmp_path / "why.gralis").values[0] != 7.0


def test_a_loaded_explanation_cannot_go_on(tmp_path) -> None:
    before = an_explanation()
    assert before._continue is not None
    after = load(before.save(tmp_path / "why.gralis"))
    assert after._continue is None
    with pytest.raises(GralisError, match="loaded from a file"):
        after.extend(100)


def test_a_result_that_was_cut_short_says_so_after_loading(tmp_path) -> None:
    whole = an_explanation()
    before = replace(whole, complete=False, reached=False, provenance={**whole.provenance, "tolerance": 1e-9})
    after = load(save(before, tmp_path / "why.gralis"))
    assert (after.complete, after.reached) == (False, False)
    assert repr(after) == repr(before)
    assert "stopped before" in repr(after)


def test_several_baselines_come_back(tmp_path) -> None:
    points = np.random.default_rng(0).normal(size=(5, N))
    before = explained(baseline=gralis.baselines.sample(points, 3), budget=300)
    after = load(before.save(tmp_path / "why.gralis"))
    assert len(after.f_baselines) == 3
    assert same_bits(after.with_kernel(Uniform()).values, before.with_kernel(Uniform()).values)


def test_a_folded_ledger_comes_back_with_its_kernels(tmp_path, monkeypatch) -> None:
    halving = SizeKernel(lambda size: 0.5**size)
    before = folded(monkeypatch, kernel=[Gaussian(0.75), Uniform(), halving], budget=400)
    after = load(before.save(tmp_path / "why.gralis"))
    assert isinstance(after.ledger, FoldedLedger)
    for name in ("rays", "weights", "blocks"):
        assert same_bits(getattr(after.ledger, name), getattr(before.ledger, name)), name
    assert repr(after) == repr(before)
    assert same_bits(after.with_kernel(Uniform()).values, before.with_kernel(Uniform()).values)
    assert same_bits(after.with_kernel(after.ledger.kernels[2]).values, before.with_kernel(halving).values)
    with pytest.raises(GralisError, match="name every kernel beforehand"):
        after.with_kernel(Gaussian(2.0))


# --- features --------------------------------------------------------------------------------------------------------


def test_names_made_on_demand_stay_on_demand(tmp_path) -> None:
    after = load(an_explanation().save(tmp_path / "why.gralis"))
    assert isinstance(after.names, CoordinateNames)
    assert after.names[3] == "x[3]"


def test_given_names_kind_and_meta_come_back(tmp_path) -> None:
    features = gralis.features.grid((2, 3), 1)
    before = gralis.explain(lambda z: z.flatten(1).prod(1), torch.ones(2, 3), features=features, budget=None)
    after = load(before.save(tmp_path / "why.gralis"))
    assert after.names == features.names
    assert (after.features.kind, after.features.meta) == ("grid", {"patch": [1, 1]})
    assert same_bits(after.features.labels[0], features.labels[0])
    assert after.features.fingerprint() == before.features.fingerprint() == before.provenance["hashes"]["features"]
    names = ["ä", "β", "a\nb", "", "日本", '"']
    renamed = replace(before, features=gralis.features.groups(features.labels[0], names=names))
    assert load(renamed.save(tmp_path / "why.gralis")).names == tuple(names)


def test_labels_beyond_one_byte_come_back(tmp_path) -> None:
    x = torch.rand(20, 20, generator=torch.Generator().manual_seed(0))
    before = gralis.explain(lambda z: z.flatten(1).sum(1) ** 2, x, plan="independent", budget=64)
    after = load(before.save(tmp_path / "why.gralis"))
    assert after.n_features == 400
    assert same_bits(after.to_input(), before.to_input())


@pytest.mark.parametrize("form", ["tuple", "dict"])
def test_several_inputs_come_back_in_their_form(form, tmp_path) -> None:
    leaves = {"dose": torch.tensor(2.0), "rest": torch.ones(3)}  # a scalar leaf among them

    def model(dose, rest):
        return dose * rest.sum(1)

    x = leaves if form == "dict" else tuple(leaves.values())
    before = gralis.explain(model, x, plan="exhaustive", budget=None)
    after = load(before.save(tmp_path / "why.gralis"))
    old, new = before.to_input(), after.to_input()
    assert type(new) is type(old)
    if form == "dict":
        assert list(new) == ["dose", "rest"]
        old, new = tuple(old.values()), tuple(new.values())
    assert [leaf.shape for leaf in new] == [(), (3,)]
    assert all(same_bits(a, b) for a, b in zip(old, new, strict=True))
    assert after.names[:] == before.names[:]


# --- kernels ---------------------------------------------------------------------------------------------------------


def test_a_size_kernel_comes_back_as_its_table(tmp_path) -> None:
    before = explained(kernel=SizeKernel(lambda size: 1 / (1 + size)))
    after = load(before.save(tmp_path / "why.gralis"))
    assert after.kernel == SizeKernel(TableOfSizes(tuple(1 / (1 + size) for size in range(N))))
    assert repr(after.kernel) == "SizeKernel(fn=TableOfSizes(1, 0.5, 0.333333, 0.25, ... 6 sizes))"
    assert same_bits(after.values, before.values)
    assert same_bits(after.with_kernel(after.kernel).values, before.values)
    assert same_bits(after.effective_rays, before.effective_rays)
    again = load(after.save(tmp_path / "again.gralis"))
    assert again.kernel == after.kernel
    assert repr(again) == repr(after)


def test_a_table_of_sizes_can_be_pickled_and_knows_its_end() -> None:
    table = TableOfSizes((1.0, 0.0, 2.5))
    assert pickle.loads(pickle.dumps(table)) == table != TableOfSizes((1.0, 0.0, 2.0))
    assert [table(size) for size in range(3)] == [1.0, 0.0, 2.5]
    for size in (3, -1):
        with pytest.raises(GralisError, match=rf"sizes 0 \.\. 2 only; size {size} is not"):
            table(size)


def twice_without_the_first(masks):
    return np.where(masks[:, 0], 1.0, 2.0)


def test_a_kernel_that_was_a_function_is_forgotten_but_its_values_stay(tmp_path) -> None:
    before = explained(kernel=twice_without_the_first)
    after = load(before.save(tmp_path / "why.gralis"))
    assert after.kernel == UnsavedKernel("twice_without_the_first")
    assert "cannot be repeated. The kernel twice_without_the_first was Python code" in repr(after)
    assert same_bits(after.values, before.values)
    assert same_bits(after.stderr, before.stderr)
    with pytest.raises(GralisError, match="twice_without_the_first was Python code, which a file cannot hold"):
        after.with_kernel(after.kernel)
    with pytest.raises(GralisError, match="cannot hold"):
        after.kernel.log_weight(np.ones((1, N), dtype=bool), np.ones(N))
    assert same_bits(after.with_kernel(MaskKernel(twice_without_the_first)).values, before.values)
    assert load(after.save(tmp_path / "again.gralis")).kernel == after.kernel


class Sharper(Gaussian):
    """A user's own kernel: a Gaussian by descent, not by its weights."""

    def log_p(self, squared_distance):
        return 2 * super().log_p(squared_distance)


def test_a_users_kernel_class_is_not_mistaken_for_its_parent(tmp_path) -> None:
    before = explained(kernel=Sharper(0.75))
    after = load(before.save(tmp_path / "why.gralis"))
    assert after.kernel == UnsavedKernel(repr(Sharper(0.75)))
    assert same_bits(after.values, before.values)


# --- what JSON cannot hold by itself ---------------------------------------------------------------------------------


def test_numpy_values_and_non_finite_floats_survive(tmp_path) -> None:
    plan = {"estimator": "plain", "n": np.int64(3), "f": np.float32(0.1), "yes": np.True_, "a": np.arange(2)}
    odd = {"inf": math.inf, "-inf": -np.inf, "nan": np.float64("nan"), "pair": (1, np.array(2.5)), 5: torch.float32}
    cost = replace(an_explanation().cost, seconds=np.float64(0.1), n_rays=np.int32(7))
    before = replace(an_explanation(), plan=plan, provenance=odd, f_x=np.float64(0.1), cost=cost)
    after = load(before.save(tmp_path / "why.gralis"))
    assert after.plan == {"estimator": "plain", "n": 3, "f": float(np.float32(0.1)), "yes": True, "a": [0, 1]}
    assert after.plan["yes"] is True
    assert math.isnan(after.provenance.pop("nan"))
    assert after.provenance == {"inf": math.inf, "-inf": -math.inf, "pair": [1, 2.5], "5": "torch.float32"}
    assert after.f_x == 0.1
    assert asdict(after.cost) == asdict(before.cost)


# --- files that are not explanations ---------------------------------------------------------------------------------


def test_a_missing_a_foreign_and_a_truncated_file_each_get_a_sentence(tmp_path) -> None:
    with pytest.raises(GralisError, match=r"There is no file .*nowhere\.gralis"):
        load(tmp_path / "nowhere.gralis")
    path = tmp_path / "why.gralis"
    path.write_text("not a zip")
    with pytest.raises(GralisError, match="not a whole gralis file"):
        load(path)
    write_arrays(path, {"a": np.zeros(3)}, {"kind": "ledger"})
    with pytest.raises(GralisError, match=r"ledger.*explanation|explanation.*ledger"):
        load(path)
    whole = an_explanation().save(path).read_bytes()
    for part in np.linspace(0, len(whole) - 1, 40).astype(int):
        path.write_bytes(whole[:part])
        with pytest.raises(GralisError, match="truncated or altered"):
            load(path)


@pytest.mark.parametrize(
    "changes",
    [
        {"kernel": "absent"},
        {"kernel": {"type": "magic"}},
        {"kernel": {"type": "sizes"}},
        {"kernel": {"type": "gaussian", "sigma": -1, "distance": "relative"}},
        {"features": []},
        {"features": {"kind": "groups", "meta": {}, "shapes": [[7]], "names": []}},
        {"cost": {"n_coins": 3}},
        {"leaf_keys": 4},
        {"folded_kernels": []},
    ],
)
def test_altered_meta_gets_one_sentence(changes, tmp_path) -> None:
    path = an_explanation().save(tmp_path / "why.gralis")
    rewritten(path)  # by itself harmless
    assert load(path).n_features == N
    rewritten(path, **changes)
    with pytest.raises(GralisError, match=r"why\.gralis is not a whole gralis explanation .*altered"):
        load(path)


def test_an_altered_ledger_column_is_noticed(tmp_path) -> None:
    before = an_explanation()
    path = before.save(tmp_path / "why.gralis")
    written = path.read_bytes()
    gradient = np.ascontiguousarray(before.ledger.gradient).tobytes()
    assert written.count(gradient) == 1
    place = written.index(gradient) + 11
    path.write_bytes(written[:place] + bytes([written[place] ^ 1]) + written[place + 1 :])
    with pytest.raises(GralisError, match="altered"):
        load(path)


def test_json_is_strict_and_complete() -> None:
    found = replace(an_explanation(), f_x=float("inf"))
    read = json.loads(found.to_json(), parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert read["f_x"] is None
    assert read["values"] == found.values.tolist()
    assert read["provenance"]["seed"] == found.provenance["seed"]
