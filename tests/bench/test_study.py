"""A study of a model that looks at one region: faithful methods find it, random does not; workers change nothing."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch

import gralis
from bench.workshop import REGION, Generated, furnish, network
from gralis import faithfulness, methods
from gralis.bench import Item, Pictures, Study, comparisons, means, measure, read_labels, rows, run
from gralis.bench.repeats import Repeats
from gralis.cli.model import load_model
from gralis.errors import GralisError
from gralis.files.images import Preprocessing
from gralis.many import folder
from gralis.methods import METHODS
from gralis.methods.settings import MethodSettings

FAITHFUL = ("gralis", "gralis_uniform", "singles", "integrated_gradients", "kernel_shap", "lime", "occlusion")
SMALL = Study(methods=(*FAITHFUL, "random"), metrics=("deletion", "insertion", "road_gap", "completeness"), budget=200)


def test_every_faithful_method_ranks_the_planted_region_first_and_beats_random(tmp_path):
    records = run(SMALL, Generated(12), network, tmp_path / "out", workers=1)
    for record in records:
        found = {name: int(np.argmax(values)) for name, values in record["attributions"].items()}
        assert {found[name] for name in FAITHFUL} == {REGION}
    assert len({int(np.argmax(record["attributions"]["random"])) for record in records}) > 1
    by = {(one.metric, one.method): one for one in means(rows(records, group="image"))}
    for metric in ("deletion", "insertion", "road_gap"):
        for name in FAITHFUL:
            mine, chance = by[metric, name], by[metric, "random"]
            assert (mine.high < chance.low) if mine.better == "lower" else (mine.low > chance.high)
    assert by["completeness", "gralis"].n_images == 12
    assert ("completeness", "random") not in by  # its sum means nothing
    tests = comparisons(rows(records, group="image"), test="permutation")
    against = {(one.metric, one.a): one.winner for one in tests if one.b == "random"}
    for metric in ("deletion", "insertion", "road_gap"):
        assert {name: against[metric, name] for name in FAITHFUL} == {name: name for name in FAITHFUL}


def test_scores_are_those_of_the_metric_itself():
    item, model = Generated().load(0), network()
    record = measure(Study(methods=("occlusion",), metrics=("deletion:blur",)), model, item, repeated=False)
    phi = methods.occlusion(model, item.x, target=1, features=item.features)
    by_hand = faithfulness.deletion(model, item.x, phi, target=lambda z: z.softmax(1)[:, 1], baseline="blur")
    (score,) = record["scores"]
    assert score["value"] == pytest.approx(by_hand.value, abs=1e-9)
    assert score["curve"]["values"] == pytest.approx(by_hand.curve.values)
    assert record["attributions"]["occlusion"] == pytest.approx(phi.values)


def test_a_metric_with_a_replacement_is_still_that_metric():
    item, model = Generated().load(0), network()
    study = Study(methods=("occlusion", "random"), metrics=("stability:blur", "completeness:blur"), budget=150)
    first, later = (measure(study, model, item, repeated=repeated)["scores"] for repeated in (True, False))
    named = {(score["method"], score["metric"]) for score in first}
    assert named == {("occlusion", "stability:blur"), ("random", "stability:blur"), ("occlusion", "completeness:blur")}
    assert [(score["method"], score["metric"]) for score in later] == [("occlusion", "completeness:blur")]
    twice = replace(study, methods=("occlusion",), metrics=("max_sensitivity", "max_sensitivity:blur"), n_repeats=3)
    both = measure(twice, model, item, repeated=True)
    asked = {"target": 1, "features": item.features, "baseline": "blur", "seed": both["seed"]}
    phi = methods.occlusion(model, item.x, **asked)
    by_hand = faithfulness.max_sensitivity(model, item.x, phi, method="occlusion", n_perturbations=3, **asked)
    assert both["scores"][1]["value"] == pytest.approx(by_hand.value, rel=1e-4)
    assert by_hand.value > 1e-3


def test_infidelity_evaluated_once_is_that_of_every_method():
    item, model = Generated().load(0), network()
    record = measure(Study(methods=("occlusion", "random"), metrics=("infidelity",)), model, item, repeated=False)
    for score in record["scores"]:
        phi = np.array(record["attributions"][score["method"]])
        options = {
            "target": 1,
            "features": item.features,
            "seed": record["seed"],
            "normalise": score["method"] == "random",
        }
        assert score["value"] == pytest.approx(faithfulness.infidelity(model, item.x, phi, **options).value, rel=1e-6)


def test_a_ledger_that_was_kept_is_what_the_methods_read(tmp_path):
    study = Study(methods=("gralis", "singles"), metrics=("gini",), budget=150)
    (record,) = run(study, Generated(1), network, tmp_path, workers=1, keep_ledgers=True)
    (path,) = (tmp_path / "ledgers").iterdir()
    explanation = gralis.load(path)
    assert explanation.values.tolist() == record["attributions"]["gralis"]
    assert explanation.singles().values.tolist() == record["attributions"]["singles"]


def test_one_ledger_serves_all_methods_that_read_it_also_when_they_run_again(monkeypatch):
    made = []
    original = MethodSettings.explain.__globals__["explain"]
    counted = lambda *a, **o: made.append(1) or original(*a, **o)  # noqa: E731
    monkeypatch.setitem(MethodSettings.explain.__globals__, "explain", counted)
    item = Generated().load(0)
    study = Study(
        methods=("gralis", "singles", "lime"), metrics=("max_sensitivity", "stability"), n_repeats=3, budget=150
    )
    record = measure(study, network(), item, repeated=True)
    assert len(made) == 1 + 3 + 2  # the image, three perturbations, two further seeds: not three times that
    asked = {"target": 1, "features": item.features, "budget": 150, "seed": record["seed"]}
    phi = methods.lime(network(), item.x, **asked)
    alone = faithfulness.stability(network(), item.x, phi, method="lime", n_runs=3, **asked)
    shared = next(s["value"] for s in record["scores"] if (s["method"], s["metric"]) == ("lime", "stability"))
    assert shared == pytest.approx(alone.value, rel=1e-6)


def test_repeats_tell_models_apart():
    item = Generated().load(0)
    again = Repeats(("occlusion",), {"target": 1, "features": item.features}).method("occlusion")
    model = network()
    first = again(model, item.x).values
    with torch.no_grad():
        model.scale.fill_(6.0)
    assert again(model, item.x).values == pytest.approx(2 * first, rel=1e-5)


def test_the_numbers_do_not_depend_on_the_number_of_workers(tmp_path):
    furnish(tmp_path)
    labels = read_labels(tmp_path / "labels.csv")
    source = Pictures(tmp_path / "photos", labels, Preprocessing(16, 16), segments=6)
    model = partial(load_model, str(tmp_path / "net.py:build"))
    study = Study(methods=("gralis", "gradcam", "random"), metrics=("deletion", "road_morf", "gini"), budget=120)
    tables = [rows(run(study, source, model, tmp_path / f"out{n}", workers=n)) for n in (1, 2)]
    assert tables[0] == tables[1]
    assert {row.group for row in tables[0]} == {"0", "1"}
    assert len(tables[0]) == 3 * 3 * 3


def test_what_fails_is_recorded_and_the_rest_goes_on(tmp_path):
    furnish(tmp_path)
    (tmp_path / "photos" / "p1.png").write_bytes(b"no picture")
    source = Pictures(tmp_path / "photos", read_labels(tmp_path / "labels.csv"), Preprocessing(16, 16), segments=6)
    study = Study(methods=("occlusion", "random"), metrics=("deletion", "gini"), budget=3)  # too small for occlusion
    records = run(study, source, network, tmp_path / "out", workers=1)
    assert ["error" in record for record in records] == [False, True, False]
    table = rows(records)
    assert {(row.method, bool(row.error)) for row in table if row.method} == {("occlusion", True), ("random", False)}
    assert "one forward for every feature" in next(row.error for row in table if row.method == "occlusion")
    assert "p1.png is not a picture" in next(row.error for row in table if not row.method)
    assert {one.method for one in means(table)} == {"random"}


def test_a_method_of_the_ledger_that_fails_does_not_take_the_others_with_it(monkeypatch):
    def broken(*arguments, **options):
        raise GralisError("cannot")

    monkeypatch.setitem(methods.run.__globals__, "METHODS", {**METHODS, "lime": broken})
    study = Study(methods=("gralis", "lime"), metrics=("gini",), budget=100)
    record = measure(study, network(), Generated().load(0), repeated=False)
    assert set(record["attributions"]) == {"gralis"}
    assert next(s for s in record["scores"] if s["method"] == "lime")["error"] == "cannot"


def test_seeds_are_the_images_own_and_the_study_s():
    assert Study(seed=0).seed_of("a") != Study(seed=1).seed_of("a") != Study(seed=1).seed_of("b")
    item = Generated().load(0)
    moved = Item("another name", item.x, item.features, item.target)
    study = Study(methods=("random",), metrics=("gini",))
    first, again, other = (measure(study, network(), one, repeated=False) for one in (item, item, moved))
    assert first["attributions"] == again["attributions"] != other["attributions"]
    assert json.loads(json.dumps(first)) == first


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"methods": ("gralis", "no")}, "'methods'"),
        ({"metrics": ()}, "'metrics'"),
        ({"metrics": ("gini", "gini")}, "different names"),
        ({"readout": "loud"}, "'readout'"),
        ({"budget": 0}, "budget"),
    ],
)
def test_a_bad_study_is_one_sentence(changed, said):
    with pytest.raises(GralisError, match=said):
        Study(**changed)


def test_a_source_checks_its_labels(tmp_path):
    furnish(tmp_path)
    path = tmp_path / "labels.csv"
    for text, said in (
        ("name\na", "must have a column 'file'"),
        ("file\na\na", "a file twice"),
        ("file,label\na", "line 2"),
    ):
        path.write_text(text)
        with pytest.raises(GralisError, match=said):
            read_labels(path)
    with pytest.raises(GralisError, match="outside the folder"):
        Pictures(tmp_path / "photos", ({"file": "../net.py"},)).load(0)
    with pytest.raises(GralisError, match="none of the classes"):
        Pictures(tmp_path / "photos", ({"file": "p0.png", "label": "x"},), classes=("y",)).load(0)


def test_a_study_takes_whatever_explain_many_takes(tmp_path, monkeypatch):
    """A list of pairs and a folder: the same items, the same numbers; finished images are not measured again."""
    furnish(tmp_path, n=2)
    study = Study(methods=("occlusion", "random"), metrics=("gini", "deletion"), baseline=0.1, repeats_on=0)
    generated = [Generated().load(number) for number in range(2)]
    elements = [(item.x, 1) for item in generated]
    records = run(study, elements, network, tmp_path / "pairs", workers=2)
    assert [(record["image"], record["about"]) for record in records] == [("0", {"label": "1"}), ("1", {"label": "1"})]
    alone = measure(study, network(), Item("0", elements[0][0]), repeated=False)
    assert records[0]["attributions"]["random"] == alone["attributions"]["random"]
    made = []
    monkeypatch.setitem(run.__globals__, "measure", lambda *a, **o: made.append(1) or measure(*a, **o))
    assert run(study, elements, network, tmp_path / "pairs", workers=1) == records
    assert not made
    elements[1] = (elements[1][0] + 0.01, 1)
    run(study, elements, network, tmp_path / "pairs", workers=1)
    assert len(made) == 1
    pictures = run(study, folder(tmp_path / "photos", size=16), network, tmp_path / "folder", workers=1)
    assert [record["image"] for record in pictures] == ["p0.png", "p1.png"]
    assert all(len(record["scores"]) == 4 for record in pictures)


def test_a_registered_metric_is_found_and_given_what_it_takes():
    seen = {}

    def marked(model, x, attribution, *, annotation, target=None, **keywords):
        seen["annotation"] = annotation
        return faithfulness.Score("marked", float(annotation.mean()), "higher")

    def again(model, x, attribution, *, method, seed=0, **keywords):
        seen["again"] = method(model, x, seed=seed).values
        return faithfulness.Score("again", 0.0, "lower")

    faithfulness.register("marked", marked)
    faithfulness.register("again", again)
    study = Study(methods=("occlusion",), metrics=("marked", "again", "gini"))
    item = Generated().load(0)
    record = measure(study, network(), item, repeated=False)
    assert [score["metric"] for score in record["scores"]] == ["gini"]  # no annotation, and not repeated
    mask = np.eye(16, dtype=bool)
    record = measure(study, network(), replace(item, annotation=mask), repeated=True)
    assert [score["metric"] for score in record["scores"]] == ["marked", "again", "gini"]
    assert record["scores"][0]["value"] == pytest.approx(1 / 16)
    assert seen["annotation"] is mask
    assert seen["again"].tolist() == record["attributions"]["occlusion"]
