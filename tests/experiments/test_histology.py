"""The histology experiment on generated images: it runs from pictures to page, and goes on where it was."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import mannwhitneyu

import gralis

FOLDER = Path(__file__).parents[2] / "experiments" / "histology"
MODULES = ("setting", "images", "network", "train", "probe", "parts", "explain", "studies", "shifts", "story", "tried")


def start(*arguments: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(Path(gralis.__file__).parents[1]), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(FOLDER / "run.py"), "--small", "--workers", "1", *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def modules(monkeypatch):
    """The files of the experiment as its own scripts see them; forgotten afterwards, their names are common."""
    monkeypatch.syspath_prepend(FOLDER)
    for name in MODULES:
        monkeypatch.delitem(sys.modules, name, raising=False)
    yield {name: __import__(name) for name in MODULES}
    for name in MODULES:
        sys.modules.pop(name, None)


def test_the_small_run_makes_its_page_and_is_not_done_twice(tmp_path):
    out = tmp_path / "out"
    said = start("--out", str(out))
    assert "epoch 12 of 12" in said
    text, page = (out / "histology.md").read_text(), (out / "page.html").read_text()
    of_both = ("Algorithm 1", "The residual in its parts", "Six cases", "Stains and compression")
    for heading in (*of_both, "The number of regions", "IDC and PCam"):
        assert f"## {heading}" in text
    for heading in (*of_both, "deletion", "road_morf", "max_sensitivity"):
        assert f"<h2>{heading}</h2>" in page
    assert "**For a pathologist.**" in "\n".join(text.splitlines()[:10])
    figures = [f"histology-{name}.png" for name in ("cases", "methods", "residual", "sigma", "regions")]
    for name in figures:
        assert f"(figures/{name})" in text
        assert (out / "figures" / name).read_bytes().startswith(b"\x89PNG")
    trained = json.loads((out / "training.json").read_text())
    assert trained["test"]["auc"] > 0.9  # the planted cluster is easy
    assert f"| auc | {trained['test']['auc']:.3g} | {trained['train']['auc']:.3g} |" in text

    parts = json.loads((out / "studies" / "residual-0.json").read_text())["parts"]
    assert parts["observed"][0] == pytest.approx(parts["path"][0] + parts["numerical"][0] + parts["kernel"][0])
    theirs = json.loads((out / "studies" / "paper-0.json").read_text())["algorithm_1"]
    assert theirs["n_gradients"] == 4 * theirs["n_features"] * 4

    kept = {path: path.stat().st_mtime_ns for path in out.rglob("*") if path.suffix in (".json", ".gralis", ".pt")}
    (out / "studies" / "bound-0.json").unlink()  # as if the run had been stopped before
    (out / "page.html").unlink()
    said = start("--out", str(out), "--docs", str(tmp_path / "docs" / "histology.md"))
    assert (tmp_path / "docs" / "histology.md").read_text() == text
    assert sorted(path.name for path in (tmp_path / "docs" / "figures").iterdir()) == sorted(figures)
    assert "epoch" not in said
    assert "bound-0.json" in said
    changed = {path.name for path, when in kept.items() if path.stat().st_mtime_ns != when}
    assert changed == {"bound-0.json", "setting.json"}
    assert (out / "page.html").read_text() == page


def test_no_patient_is_on_both_sides_and_images_spread_over_patients(modules):
    images = modules["images"]
    labels = [
        {"file": f"{p}-{k}", "label": "ab"[p % 3 == 0], "patient": f"p{p}"} for p in range(20) for k in range(p % 4 + 1)
    ]
    first, held_out = images.split(labels, 0.25, seed=0)
    assert len(first) + len(held_out) == len(labels)
    assert not {r["patient"] for r in first} & {r["patient"] for r in held_out}
    assert len({r["patient"] for r in held_out}) == 5
    assert {r["label"] for r in held_out} == {"a", "b"}
    assert images.split(labels, 0.25, seed=0) == (first, held_out) != images.split(labels, 0.25, seed=1)
    assert len({r["patient"] for r in images.spread(held_out, 5, seed=0)}) == 5
    assert len(images.spread(held_out, 1000, seed=0)) == len(held_out)


def test_quality_is_what_it_says(modules):
    train = modules["train"]
    rng = np.random.default_rng(0)
    scores, truth = rng.random(40).round(1), rng.random(40) < 0.4
    by_scipy = mannwhitneyu(scores[truth], scores[~truth]).statistic / (truth.sum() * (~truth).sum())
    assert train.auc(scores, truth) == pytest.approx(by_scipy)
    table = np.array([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8], [0.7, 0.3]])
    found = train.quality(table, np.array([0, 0, 1, 1]), ["a", "a", "b", "b"])
    areas = {"auc": 0.75, "auc_low": 0.75, "auc_high": 0.75}  # one patient of each class: nothing else can be drawn
    assert found == {"accuracy": 0.75, "balanced_accuracy": 0.75, "patient_accuracy": 1.0, **areas}


def test_the_interval_of_the_area_is_over_patients_not_images(modules):
    """Eight patients, all images of one alike: as wide as if each had one image."""
    train = modules["train"]
    rng = np.random.default_rng(1)
    of_patient, positive = rng.normal(size=8), np.arange(8) % 2 == 0
    widths = []
    for copies in (1, 50):
        groups = [range(p * copies, (p + 1) * copies) for p in range(8)]
        low, high = train.auc_over_patients(np.repeat(of_patient, copies), np.repeat(positive, copies), groups)
        assert low <= train.auc(of_patient, positive) <= high
        widths.append(high - low)
    assert widths[0] > 0.3
    assert widths[1] == pytest.approx(widths[0])


def test_stains_move_channels_and_zooms_keep_the_picture(modules):
    import torch

    train, rng = modules["train"], np.random.default_rng(0)
    ramp = torch.linspace(-1, 1, 32).expand(2, 3, 32, 32).contiguous()
    stained = train.stained(ramp, rng)
    gain = (stained[..., 31] - stained[..., 0]) / 2
    shift = (stained[..., 31] + stained[..., 0]) / 2
    assert torch.allclose(stained, ramp * gain[..., None] + shift[..., None], atol=1e-6)  # a line for every channel
    assert ((gain >= 0.8) & (gain <= 1.2)).all()
    assert (shift.abs() <= 0.5).all()
    assert len({round(float(g), 6) for g in gain[..., 0].flatten()}) == 6  # of every image and channel its own

    for _ in range(20):
        zoomed = train.zoomed(ramp, rng)
        assert zoomed.shape == ramp.shape
        assert 0.65 <= float(zoomed[0, 0, 0, -1] - zoomed[0, 0, 0, 0]) / 2 <= 1.0  # 70 to 100% of the ramp is left
        assert (zoomed[..., 1:] >= zoomed[..., :-1]).all()


def test_training_goes_on_where_it_was(modules, tmp_path):
    import torch

    setting, train = modules["setting"], modules["train"]
    small = {**setting.SMALL, "epochs": 4, "seed": 3}
    whole = setting.Setting(out=str(tmp_path / "whole"), **small)
    train.train(whole)
    stopped = setting.Setting(out=str(tmp_path / "stopped"), **small)
    save, calls = torch.save, []

    def killed(content, path):
        save(content, path)
        calls.append(path)
        if len(calls) == 2:
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch, "save", killed)
        with pytest.raises(KeyboardInterrupt):
            train.train(stopped)
    found = train.train(stopped)
    assert len(found["history"]) == 4
    one, other = (torch.load(tmp_path / name / "model.pt", weights_only=True) for name in ("whole", "stopped"))
    assert all(torch.equal(one[key], other[key]) for key in one)


def test_a_folder_belongs_to_its_labels_and_its_weights_wherever_they_lie(modules, tmp_path):
    setting = modules["setting"]
    for name, labels, weights in (("a", "one", b"1"), ("moved", "one", b"1"), ("other", "two", b"2")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "labels.csv").write_text(f"file,label,patient\n0.png,{labels},0\n")
        (tmp_path / name / "start.pt").write_bytes(weights)

    def claim(data: str, weights: str) -> None:
        start = str(tmp_path / weights / "start.pt") if weights else ""
        setting.claim(setting.Setting(out=str(tmp_path / "out"), data=str(tmp_path / data), weights=start))

    claim("a", "a")
    claim("moved", "moved")
    for name, data, weights in (("data", "other", "a"), ("weights", "a", "other"), ("weights", "a", "")):
        with pytest.raises(SystemExit, match=f"was made with {name} = .* use another --out"):
            claim(data, weights)
    with pytest.raises(SystemExit, match=r"labels\.csv cannot be read"):
        claim("missing", "a")
    with pytest.raises(SystemExit, match=r"start\.pt cannot be read"):
        claim("a", "missing")


def test_a_probe_trains_the_last_layer_alone(modules, tmp_path, monkeypatch):
    """As the command for IDC and PCam has it; a frozen backbone keeps its statistics, too."""
    import torch
    from torch import nn

    setting, train = modules["setting"], modules["train"]

    def build(name: str, n_classes: int) -> nn.Module:
        body = modules["network"].build("tiny", n_classes)
        return nn.Sequential(body[0], nn.BatchNorm2d(8), *body[1:]).eval()

    monkeypatch.setattr(train, "build", build)
    first = build("tiny", 2).state_dict()
    torch.save({**first, "0.bias": first["0.bias"] + 0.5}, tmp_path / "start.pt")
    command = f"train.py --small --out {tmp_path / 'out'} --probe 1 --weights {tmp_path / 'start.pt'} --epochs 3"
    monkeypatch.setattr(sys, "argv", command.split())
    found = train.train(setting.claimed(None))
    given = torch.load(tmp_path / "start.pt", weights_only=True)
    made = torch.load(tmp_path / "out" / "model.pt", weights_only=True)
    changed = {name for name in made if not torch.equal(made[name], given[name])}
    assert changed == {"7.weight", "7.bias"}
    assert found["n_copied"] == len(given)
    assert found["history"][-1]["loss"] < found["history"][0]["loss"]


def test_the_last_module_of_densenet_is_its_classifier(modules):
    pytest.importorskip("monai")
    assert list(modules["network"].build("densenet121", 2).named_modules())[-1][0] == "class_layers.out"


def test_weights_with_other_names_are_found(modules, tmp_path):
    import torch

    pytest.importorskip("monai")
    network = modules["network"]
    theirs = {
        key.replace(".layers.", ".").replace("class_layers.out", "classifier"): torch.full_like(value, 2)
        for key, value in network.build("densenet121", 12).state_dict().items()
    }
    torch.save(theirs, tmp_path / "start.pt")
    mine = network.build("densenet121", 2)
    copied = network.start_from(mine, str(tmp_path / "start.pt"))
    assert copied == len(theirs) - 2  # all but the last layer
    state = mine.state_dict()
    assert (state["features.denseblock2.denselayer3.layers.conv1.weight"] == 2).all()
    assert not (state["class_layers.out.weight"] == 2).all()


def test_the_folds_of_the_probe_keep_patients_together_and_spread_the_classes(modules):
    import probe

    labels = [{"file": f"{p}-{k}", "label": "ab"[p % 3 == 0], "patient": f"p{p}"} for p in range(21) for k in range(3)]
    folds = probe.patient_folds(labels, 5, seed=1)
    by_patient = {row["patient"]: {int(f) for r, f in zip(labels, folds, strict=True) if r == row} for row in labels}
    assert all(len(of) == 1 for of in by_patient.values())
    for label in "ab":
        counts = np.bincount(folds[[row["label"] == label for row in labels]], minlength=5) / 3
        assert counts.max() - counts.min() <= 1


def test_the_probe_and_its_network_are_one_module_and_noise_gets_no_credit(modules, tmp_path):
    """The module gives the log-odds of the fitted probe; nested folds of labels without meaning stay near one half."""
    import probe
    import torch

    network = modules["network"].build("efficientnet-pooled", 2)
    rng = np.random.default_rng(0)
    labels = [{"file": f"{p}-{k}", "label": "ab"[p % 2], "patient": f"p{p}"} for p in range(20) for k in range(2)]
    images = rng.integers(0, 255, (40, 32, 48, 3)).astype(np.uint8)
    positive = np.array([row["label"] == "b" for row in labels])
    images[positive] = (images[positive] * 0.6).astype(np.uint8)  # darker pictures
    features = probe.pooled(network, images, tmp_path)
    assert np.array_equal(features, probe.pooled(network, images, tmp_path))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(probe, "CHOICES", ((("block 4",), 1e-2), (("head",), 1e-2)))
        everything = (features, labels, positive, np.arange(40), network.widths)
        probe.Probe.of(*everything, seed=0).into(network)
        nested = probe.nested(features, labels, positive, network.widths, seed=0)
        found = nested.record
        shuffled = np.array([rng.permutation(20)[0] % 2 == 0 for _ in range(20)]).repeat(2)
        chance = probe.nested(rng.standard_normal(features.shape), labels, shuffled, network.widths, seed=0).record
        for fold, own in enumerate(nested.probes):  # the scores come from the probe that has not seen the patient
            out = nested.folds == fold
            again = probe.Probe.of(features, labels, positive, np.flatnonzero(~out), network.widths, seed=0)
            assert np.allclose(again.scores(features[out]), nested.scores[out])
            assert np.allclose(own.scores(features[out]), nested.scores[out])
    with torch.no_grad():
        batch = torch.from_numpy(images).permute(0, 3, 1, 2).float() / 255
        odds = network((batch - 0.5) / 0.5)
    used = np.flatnonzero(network.weight.numpy())
    alone = probe.fitted(features[:, used], positive, 1e-2).decision_function(features[:, used])
    assert np.allclose(odds[:, 1].numpy(), alone, atol=1e-3)  # the module says what the fitted probe says
    assert ((odds[:, 1] > odds[:, 0]).numpy() == positive).mean() > 0.95
    assert found["patient_auc"][0] > 0.95
    assert 0.2 < chance["image_auc"][0] < 0.8


def test_every_image_of_the_study_is_explained_by_the_network_of_its_fold(modules, tmp_path):
    setting, parts = modules["setting"], modules["parts"]
    labels = [{"file": f"{p}-{k}", "label": "ab"[p % 2], "patient": f"p{p}"} for p in range(20) for k in range(2)]
    (tmp_path / "labels.csv").write_text("\n".join(["file,label,patient", *(",".join(r.values()) for r in labels)]))
    for row in labels:
        (tmp_path / row["file"]).touch()
    folds = {row["file"]: f"fold-{int(row['patient'][1:]) % 5 + 1}" for row in labels}
    setting.write_json(tmp_path / "training.json", {"folds": folds})
    of = setting.Setting(data=str(tmp_path), out=str(tmp_path), n_images=15)
    cases = parts.cases(of)
    assert len({case.row["patient"] for case in cases}) == 15
    assert [case.row for case in cases] == list(parts.held_out(of))
    for case in cases:
        assert case.part.name == folds[case.row["file"]]
        assert case.part.labels[case.index] == case.row
        assert parts.model_path(of, case.part.name).name == f"model-{folds[case.row['file']]}.pt"


def test_a_stain_that_is_multiplied_by_one_changes_nothing_and_by_more_darkens(modules, tmp_path):
    from PIL import Image

    shifts, rng = modules["shifts"], np.random.default_rng(0)
    picture = Image.fromarray(rng.integers(20, 250, (24, 32, 3)).astype(np.uint8))

    def through(shift) -> np.ndarray:
        return np.asarray(Image.open(shift(picture, tmp_path)), dtype=float)

    given = np.asarray(picture, dtype=float)
    for stain in (shifts.HAEMATOXYLIN, shifts.EOSIN):
        assert np.abs(through(shifts.stain(stain, 1.0)) - given).max() <= 1
    tissue = Image.fromarray(np.full((8, 8, 3), (120, 80, 150), np.uint8))
    strong, weak = (
        np.asarray(Image.open(shifts.stain(shifts.HAEMATOXYLIN, factor)(tissue, tmp_path)), dtype=float).mean()
        for factor in (1.2, 0.8)
    )
    assert strong < np.asarray(tissue).mean() < weak
    errors = [np.abs(through(shifts.jpeg(quality)) - given).mean() for quality in (90, 70, 50)]
    assert errors == sorted(errors)


def test_a_shifted_picture_is_explained_as_if_it_were_the_first(modules):
    """A linear model: on the same rays the new values are the weights times the new picture."""
    import torch
    from torch import nn

    shifts = modules["shifts"]
    torch.manual_seed(0)
    network = nn.Sequential(nn.Flatten(), nn.Linear(48, 2)).eval()
    x, other = torch.rand(3, 4, 4) + 0.1, torch.rand(3, 4, 4) + 0.1
    features = gralis.features.grid((3, 4, 4), 2)
    options = {"target": 1, "features": features, "batch_size": 8}
    options |= {"plan": "values", "budget": 16, "progress": False}
    first = gralis.explain(network, x, **options)
    item = gralis.bench.Item("x", x, features)
    found = shifts.again(network, item, other, first, options)
    weights = network[1].weight[1].detach().reshape(3, 4, 4)
    region = torch.tensor(features.labels[0])
    expected = [float((weights * other)[region == i].sum()) for i in range(4)]
    assert np.allclose(found.values, expected, atol=1e-5)
    line = shifts.line("other", first, found)
    assert line["changed"] == 1.0
    assert line["relative"] == pytest.approx(np.linalg.norm(found.values - first.values) / np.linalg.norm(first.values))
    assert shifts.line("same", first, shifts.again(network, item, x, first, options))["changed"] == 0.0


def test_the_six_cases_are_chosen_by_their_rule(modules):
    from types import SimpleNamespace

    story = modules["story"]
    odds = [5.0, 4.0, 3.0, 4.5, 3.5, 0.1, 0.2, 2.0]
    right = [True, True, True, False, False, True, False, True]
    every = [
        story.Judged(i, SimpleNamespace(row={"label": "a" if r else "b"}), "a", f)
        for i, (f, r) in enumerate(zip(odds, right, strict=True))
    ]
    chosen = story.six(every)
    assert [one.number for _, one in chosen] == [0, 1, 3, 4, 5, 6]
    assert [kind for kind, _ in chosen] == [kind for kind in story.KINDS for _ in range(2)]
    assert every[0].probability == pytest.approx(1 / (1 + np.exp(-5)))


def test_colours_become_those_of_the_first_picture_and_zooms_are_parts_of_it(modules):
    tried, rng = modules["tried"], np.random.default_rng(0)
    images = np.stack([rng.integers(40, 200, (30, 40, 3)), rng.integers(90, 230, (30, 40, 3))]).astype(np.uint8)
    images[1, ..., 2] //= 2
    made = tried.normalised(images)
    assert np.abs(made[0].astype(int) - images[0]).max() <= 1
    first, second = (tried.density(picture) for picture in made)
    assert np.abs(tried.density(images[1]).mean((0, 1)) - first.mean((0, 1))).max() > 0.2
    assert np.allclose(second.mean((0, 1)), first.mean((0, 1)), atol=0.01)
    assert np.allclose(second.std((0, 1)), first.std((0, 1)), atol=0.02)

    ramp = np.broadcast_to(np.arange(0, 240, 6, dtype=np.uint8)[None, None, :, None], (1, 30, 40, 3))
    shown = list(tried.views(ramp))
    assert [view.shape for view in shown] == [ramp.shape] * 6
    assert np.array_equal(shown[0], ramp)
    ends = [(int(view[0, 0, 0, 0]), int(view[0, 0, -1, 0])) for view in shown[1:]]
    assert ends == [(0, 162), (72, 234), (0, 162), (72, 234), (36, 198)]  # 28 of the 40 columns


def test_last_blocks_are_trained_on_other_patients_only(modules, monkeypatch):
    """The classes of a fold change nothing for its own scores, and dark pictures are told from bright ones."""
    tried, probe = modules["tried"], modules["probe"]
    network = modules["network"].build("efficientnet-pooled", 2)
    rng = np.random.default_rng(0)
    labels = [{"file": f"{p}", "label": "ab"[p % 2], "patient": f"p{p}"} for p in range(20)]
    y = np.array([row["label"] == "b" for row in labels])
    images = rng.integers(0, 255, (20, 32, 48, 3)).astype(np.uint8)
    images[y] //= 3
    monkeypatch.setattr(tried, "RATE", 1e-3)
    scores = tried.fine_tuned(network, images, labels, y, seed=0)
    assert probe.areas(scores, labels, y)["patient_auc"][0] > 0.9
    folds = probe.patient_folds(labels, probe.N_OUTER, 0)
    changed = tried.fine_tuned(network, images, labels, np.where(folds == 2, ~y, y), seed=0)
    assert np.array_equal(changed[folds == 2], scores[folds == 2])
    assert not np.allclose(changed[folds != 2], scores[folds != 2])
    assert not any(p.requires_grad for p in network.parameters())  # the copy was trained


def test_ideas_are_measured_once_and_shown(modules, tmp_path, monkeypatch):
    tried, setting = modules["tried"], modules["setting"]
    of = setting.Setting(out=str(tmp_path), side=32, width=48)
    assert tried.tried_section(of) is None
    asked: list[str] = []

    def known(*given: object) -> dict:
        asked.append("idea")
        return {"patient_auc": [0.9, 0.8, 0.95], "image_auc": [0.8, 0.7, 0.85]}

    nested = modules["probe"].Nested(np.zeros(1), [], np.zeros(1), known())
    monkeypatch.setattr(tried, "nested", lambda *given: asked.append("idea") or nested)
    monkeypatch.setattr(tried, "fine_tuned", lambda *given: np.zeros(1))
    monkeypatch.setattr(tried, "areas", known)
    monkeypatch.setattr(tried, "pooled", lambda *given: np.zeros((1, 1)))
    asked.clear()
    tried.tried(of)
    assert asked == ["idea"] * 4  # without weights no DenseNet
    tried.tried(of)
    assert len(asked) == 4
    text = tried.tried_section(of).markdown()
    assert text.count("| 48 x 32 | 0.900 (0.800 to 0.950) | 0.800 (0.700 to 0.850) |") == 4
