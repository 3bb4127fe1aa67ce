"""The data of the gallery: what it lists is what the run found, and its statistics are those of the definitions."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import gralis
from gallery_cases import CLASSES, NAMES, large_run, pictures_run, small_run
from gralis import GralisError
from gralis.many import Importance
from gralis.many.moments import Moments
from gralis.reading_room.thumbnails import thumbnail


def head(page: Path) -> dict[str, Any]:
    text = (page.parent / "data/head.js").read_text()
    return json.loads(re.fullmatch(r"gralisGallery\.head\((.*)\);\n", text, re.DOTALL)[1])


def rows(page: Path) -> dict[str, list[Any]]:
    """The columns of all chunks together."""
    found: dict[str, list[Any]] = {}
    for file in sorted((page.parent / "data").glob("rows-*.js")):
        chunk = json.loads(re.fullmatch(r"gralisGallery\.rows\(\d+, (.*)\);\n", file.read_text(), re.DOTALL)[1])
        numbers = np.frombuffer(base64.b64decode(chunk["phi"]), "<f4")
        chunk["phi"] = list(numbers.reshape(len(chunk["id"]), chunk["n_kept"]))
        del chunk["n_kept"]
        for name, column in chunk.items():
            found.setdefault(name, []).extend(column)
    return found


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> gralis.many.Results:
    return small_run(tmp_path_factory.mktemp("run") / "results")


@pytest.fixture(scope="module")
def page(run: gralis.many.Results, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return gralis.gallery(run.path, tmp_path_factory.mktemp("site") / "gallery", classes=CLASSES)


def test_every_input_is_listed_with_its_numbers(run: gralis.many.Results, page: Path) -> None:
    found, inputs, values = rows(page), run.inputs_table().to_pylist(), run.values_table().to_pylist()
    assert found["id"] == list(run.ids)
    for place, row in enumerate(inputs):
        assert found["label"][place] == (row["label"] and CLASSES[int(row["label"])])
        assert found["failure"][place] == row["failure"]
        assert found["output"][place] == row["f_x"]
        assert found["width"][place] == row["certificate"]
        assert found["residual"][place] == row["residual"]
        own = sorted((v for v in values if v["input"] == row["input"]), key=lambda v: -abs(v["phi"]))
        assert found["top"][place] == [[v["name"], v["phi"], v["half_width"]] for v in own[:5]]
        if own:
            assert found["sure"][place] == (abs(own[0]["phi"]) > own[0]["half_width"])
    assert sum(failure is not None for failure in found["failure"]) == head(page)["n_failures"] == 1


def test_right_and_wrong_are_those_of_the_model(run: gralis.many.Results, page: Path) -> None:
    found = rows(page)
    for place, row in enumerate(run.inputs_table().to_pylist()):
        if row["failure"] is None:
            predicted = re.fullmatch(r"output\[(\d)\]", row["target"])[1]
            assert found["class"][place] == CLASSES[int(predicted)]
            assert found["right"][place] == (row["label"] == predicted)
        else:
            assert found["right"][place] is None
    assert {True, False} <= set(found["right"])


def test_without_the_predicted_class_nothing_is_right_or_wrong(tmp_path: Path) -> None:
    fixed = small_run(tmp_path / "results", n=6, target=1)
    assert set(rows(gralis.gallery(fixed, tmp_path / "gallery"))["right"]) == {None}


def test_phi_of_the_strongest_features(run: gralis.many.Results, page: Path) -> None:
    importance = gralis.global_importance(run)
    order = np.argsort(-importance.mean_abs, kind="stable")
    everyone = head(page)["everyone"]
    assert everyone["names"] == [NAMES[i] for i in order]
    np.testing.assert_allclose(everyone["mean_abs"], importance.mean_abs[order])
    np.testing.assert_allclose(everyone["mean_half"], importance.half_widths()["mean"][order])
    phi = np.array(rows(page)["phi"])
    table = run.values_table().to_pandas().pivot(index="input", columns="feature", values="phi")
    for place, name in enumerate(run.ids):
        if name in table.index:
            np.testing.assert_allclose(phi[place], table.loc[name].to_numpy()[order], rtol=1e-6)
        else:
            assert np.isnan(phi[place]).all()


def test_the_difference_of_two_classes_is_that_of_their_means(run: gralis.many.Results, page: Path) -> None:
    found = {group["by"]: group for group in head(page)["groups"]}
    importance = gralis.global_importance(run)
    everyone = head(page)["everyone"]
    order = [NAMES.index(name) for name in everyone["names"]]
    classes = [str(CLASSES.index(group["name"])) for group in found["label"]["classes"]]
    for pair in found["label"]["pairs"]:
        a, b = classes[pair["a"]], classes[pair["b"]]
        np.testing.assert_allclose(pair["mean"], (importance.by_class[a] - importance.by_class[b])[order])
    assert {group["name"] for group in found["target"]["classes"]} <= set(CLASSES)


def test_intervals_of_differences_hold() -> None:
    """Over many draws of two skewed groups: all features at once in at least 95 % of them, and not much too wide."""
    rng, n_features, inside, widths = np.random.default_rng(0), 4, 0, []
    for _ in range(400):
        a, b = rng.exponential(1.0, (40, n_features)), rng.exponential(1.0, (60, n_features)) + 0.5
        groups = {name: Moments.of(phi, np.zeros_like(phi), phi.sum(1)) for name, phi in (("a", a), ("b", b))}
        pooled = Importance(tuple("wxyz"), groups["a"].merge(groups["b"]), groups)
        difference, half = pooled.difference("a", "b")
        inside += bool((np.abs(difference + 0.5) <= half).all())
        widths.append(half.mean())
    assert inside / 400 >= 0.95
    assert np.mean(widths) < 5 * np.sqrt(1 / 40 + 1 / 60)
    assert np.isnan(
        Importance(
            ("x",),
            groups["a"],
            {"a": Moments.of(a[:1, :1], a[:1, :1], a[:1, 0]), "b": Moments.of(b[:, :1], b[:, :1], b[:, 0])},
        ).difference("a", "b")[1]
    ).all()


def test_superpixels_have_no_statistics_but_a_list(tmp_path: Path) -> None:
    x = torch.tensor(np.random.default_rng(0).random((3, 3, 16, 16)), dtype=torch.float32)
    halves = lambda image: gralis.features.grid((3, 16, 16), 8 if float(image.mean()) > 0.5 else 16)  # noqa: E731
    x[0] += 1.0
    run = gralis.explain_many(lambda z: z.mean((1, 2, 3)), x, out=tmp_path / "run", features=halves, progress=False)
    page = gralis.gallery(run, tmp_path / "site")
    assert "different features" in head(page)["everyone"]["missing"]
    assert len(rows(page)["id"]) == 3


def test_kept_explanations_have_reports_pictures_and_signs(tmp_path: Path) -> None:
    run = pictures_run(tmp_path / "results", n=2)
    page = gralis.gallery(run, tmp_path / "gallery", reports=1)
    found = rows(page)
    assert [report is None for report in found["report"]] == [False, True]
    for place, name in enumerate(found["id"]):
        explanation = run.explanation(name)
        assert found["opposed"][place] == [conflict.name for conflict in explanation.sign_conflicts]
        assert (page.parent / found["thumb"][place]).read_bytes() == thumbnail(explanation)
    report = page.parent / found["report"][0]
    np.testing.assert_array_equal(gralis.load(report).values, run.explanation(found["id"][0]).values)
    before = report.stat().st_mtime_ns
    again = rows(gralis.gallery(run, tmp_path / "gallery"))
    assert (page.parent / again["report"][0]).stat().st_mtime_ns == before  # what is there is not made again
    assert all(again["report"])


def test_a_thumbnail_is_small_and_looks_like_its_input() -> None:
    from io import BytesIO

    from PIL import Image

    x = torch.zeros(1, 200, 100)
    x[:, :100] = 1.0
    explanation = gralis.explain(lambda z: z.mean((1, 2, 3)), x, features=gralis.features.grid((1, 200, 100), 50))
    small = np.asarray(Image.open(BytesIO(thumbnail(explanation))))
    assert small.shape == (66, 33, 3)
    assert small[:33].min() == 255
    assert small[34:].max() == 0
    row = gralis.explain(lambda z: z.sum(1), torch.ones(3))
    assert thumbnail(row) is None


def test_bad_calls_are_one_sentence(run: gralis.many.Results, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    for options, name in (
        ({"out": tmp_path / "mine"}, "out"),
        ({"classes": "abc"}, "classes"),
        ({"title": 3}, "title"),
        ({"reports": -1}, "reports"),
    ):
        with pytest.raises(GralisError, match=f"'{name}' parameter of gallery"):
            gralis.gallery(run, **{"out": tmp_path / "site", **options})
    with pytest.raises(GralisError, match="not the folder of a run"):
        gralis.gallery(tmp_path / "mine", tmp_path / "site")
    with pytest.raises(GralisError, match="'results' parameter of gallery"):
        gralis.gallery(3, tmp_path / "site")  # type: ignore[arg-type]
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "years of work"


def test_a_smaller_run_leaves_no_old_rows(tmp_path: Path) -> None:
    page = gralis.gallery(large_run(tmp_path / "large", n=1500), tmp_path / "site")
    assert len(list((page.parent / "data").glob("rows-*.js"))) == 3
    page = gralis.gallery(large_run(tmp_path / "less", n=500), tmp_path / "site")
    assert len(list((page.parent / "data").glob("rows-*.js"))) == 1
    assert len(rows(page)["id"]) == head(page)["n"] == 500
