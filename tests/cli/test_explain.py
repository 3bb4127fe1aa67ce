"""`gralis explain`: what it prints is what the library computes; what is wrong with an input is one sentence."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

import gralis
from cli.workshop import network
from gralis.files import images

SMALL = ("--size", "24", "--segments", "5", "--budget", "120")


def one_sentence(error: str) -> str:
    """Standard error, checked to be a single sentence without a traceback."""
    assert error.startswith("gralis: ")
    assert error.count("\n") == 1, error
    assert "Traceback" not in error
    return error


# --- pictures --------------------------------------------------------------------------------------------------------


def test_json_holds_what_the_library_gives_for_the_same_pixels(gralis_run, folder) -> None:
    from PIL import Image

    code, out, error = gralis_run("explain", "other.png", "--model", "net.py:build", "--json", "--seed", "3", *SMALL)
    assert (code, error) == (0, "")
    found = json.loads(out)
    # 48 x 60 pixels: the square centre is columns 6..54, and 24 from 48 is a mean of neighbours, weighted 1 3 3 1.
    square = np.asarray(Image.open("other.png"), dtype=np.float64)[:, 6:54] / 255
    small = np.asarray(Image.fromarray((255 * square).astype(np.uint8)).resize((24, 24), Image.Resampling.BILINEAR))
    x = torch.tensor((small / 255 - images.IMAGENET_MEAN) / images.IMAGENET_STD, dtype=torch.float32).permute(2, 0, 1)
    with torch.no_grad():
        logits = network()(x[None])[0]
    target = int(logits.argmax())
    features = gralis.features.slic(small / 255, 5, 50, shape=(3, 24, 24))
    expected = gralis.explain(network(), x, target=target, features=features, budget=120, seed=3)
    assert found["provenance"]["target"] == f"output[{target}]"
    assert found["predicted"] is True
    assert found["f_x"] == pytest.approx(float(logits[target]), abs=1e-6)
    assert found["values"] == pytest.approx(expected.values.tolist(), abs=1e-6)
    assert found["provenance"]["hashes"] == expected.provenance["hashes"]
    assert set(json.loads(expected.to_json())) <= set(found)


def test_the_table_names_the_class_and_says_that_it_was_predicted(gralis_run) -> None:
    code, out, error = gralis_run("explain", "photo.jpg", "--model", "net.py:build", "--labels", "names.txt", *SMALL)
    assert (code, error) == (0, "")
    assert out.splitlines()[0] == "photo.jpg: output[0] (cat), the predicted class"
    assert "sum of phi" in out
    code, out, _ = gralis_run("explain", "photo.jpg", "--model", "net.py:build", "--target", "margin(2)", *SMALL)
    assert out.splitlines()[0] == "photo.jpg: margin(2)"


def test_labels_cannot_write_to_the_terminal_or_into_html(gralis_run, folder) -> None:
    for target, shown in (("1", "<img src=x onerror=alert(1)>"), ("2", "[red]dog\ufffd[31m")):
        arguments = ("photo.jpg", "--model", "net.py:build", "--target", target, "--labels", "names.txt")
        code, out, _ = gralis_run("explain", *arguments, "--out", "out", *SMALL)
        assert code == 0
        assert shown in out.splitlines()[0]
        assert "\x1b" not in out
    for page in folder.glob("out/*.html"):
        assert "<img src=x" not in page.read_text()


def test_a_picture_taken_sideways_is_turned_upright(gralis_run, folder) -> None:
    from PIL import Image

    upright = Image.open("other.png").convert("RGB")
    exif = Image.Exif()
    exif[0x0112] = 6  # "turn me 90 degrees clockwise to see me upright"
    upright.rotate(90, expand=True).save("sideways.png", exif=exif)
    found = [
        json.loads(gralis_run("explain", name, "--model", "net.py:build", "--json", *SMALL)[1])
        for name in ("other.png", "sideways.png")
    ]
    assert found[0]["provenance"]["hashes"] == found[1]["provenance"]["hashes"]


def test_one_mean_makes_a_grey_picture(gralis_run, folder) -> None:
    from pathlib import Path

    Path("grey.py").write_text("def build():\n    return lambda z: z[:, 0].square().mean((1, 2))\n")
    grey = ("--mean", "0.5", "--std", "0.25", "--json", "--size", "24x30", "--segments", "4")
    code, out, error = gralis_run("explain", "photo.jpg", "--model", "grey.py:build", *grey)
    assert (code, error) == (0, "")
    assert "over (1, 24, 30)" in json.loads(out)["provenance"]["features"]


def test_files_are_written_under_safe_names(gralis_run, folder) -> None:
    (folder / "deep" / "er").mkdir(parents=True)
    (folder.parent / "x.png").write_bytes((folder / "other.png").read_bytes())
    (folder / "x.png").write_bytes((folder / "other.png").read_bytes())
    before = sorted(folder.parent.iterdir())
    code, _, error = gralis_run("explain", "../x.png", "x.png", "--model", "net.py:build", "--out", "deep/er", *SMALL)
    assert (code, error) == (0, "")
    assert sorted(folder.parent.iterdir()) == before
    names = {path.name for path in (folder / "deep/er").iterdir() if path.suffix != ".html"}
    assert names == {"x.gralis", "x.png", "x-2.gralis", "x-2.png"}
    loaded = gralis.load(folder / "deep/er/x.gralis")
    assert (loaded.provenance["input"], loaded.provenance["label"]) == ("../x.png", None)
    assert (folder / "deep/er/x.png").read_bytes().startswith(b"\x89PNG")


def test_a_failing_picture_does_not_stop_the_others(gralis_run, folder) -> None:
    whole = (folder / "photo.jpg").read_bytes()
    (folder / "torn.jpg").write_bytes(whole[: len(whole) // 2])
    (folder / "text.png").write_text("not a picture")
    names = ("text.png", "photo.jpg", "torn.jpg", "missing.png", "other.png")
    code, out, error = gralis_run("explain", *names, "--model", "net.py:build", "--json", *SMALL)
    assert code == 2
    found = [json.loads(line) for line in out.splitlines()]
    assert [each["input"] for each in found] == list(names)
    assert ["error" in each for each in found] == [True, False, True, True, False]
    said = error.splitlines()
    assert [line.split(":")[1].strip() for line in said] == ["text.png", "torn.jpg", "missing.png"]
    assert "is not a picture that can be read" in said[0]
    assert "is broken" in said[1]
    assert "There is no file missing.png" in said[2]


def test_too_many_pixels_and_too_many_bits_are_refused(gralis_run, folder, monkeypatch) -> None:
    from PIL import Image

    Image.new("I;16", (8, 8)).save("deep.png")
    code, _, error = gralis_run("explain", "deep.png", "--model", "net.py:build")
    assert code == 2
    assert "8 bits per channel" in one_sentence(error)
    monkeypatch.setattr(images, "MOST_PIXELS", 2000)
    code, _, error = gralis_run("explain", "photo.jpg", "--model", "net.py:build")
    assert code == 2
    assert "60 x 48 pixels" in one_sentence(error)
    monkeypatch.setattr(images, "MOST_PIXELS", 10**12)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    code, _, error = gralis_run("explain", "photo.jpg", "--model", "net.py:build")
    assert code == 2
    assert "too many pixels" in one_sentence(error)


def test_a_layer_is_explained_place_by_place(gralis_run) -> None:
    arguments = (
        "photo.jpg",
        "--model",
        "net.py:build",
        "--layer",
        "1",
        "--json",
        "--out",
        "out",
        *SMALL,
        "--budget",
        "200",
    )
    code, out, error = gralis_run("explain", *arguments)
    assert (code, error) == (0, "")
    found = json.loads(out)
    assert found["provenance"]["layer"] == "1"
    assert len(found["values"]) == 36  # 24 pixels, a kernel of 3 with stride 4: 6 x 6 places
    code, _, error = gralis_run("explain", "photo.jpg", "--model", "net.py:build", "--layer", "one", *SMALL)
    assert code == 2
    assert "'layer' parameter" in one_sentence(error)


# --- tables ----------------------------------------------------------------------------------------------------------


def test_rows_are_explained_against_the_means_of_their_columns(gralis_run) -> None:
    arguments = ("--data", "table.csv", "--row", "1", "--row", "2", "--drop", "price", "--model", "net.py:rows")
    code, out, error = gralis_run("explain", *arguments, "--json", "--out", "out")
    assert (code, error) == (0, "")
    first, second = (json.loads(line) for line in out.splitlines())
    assert first["features"] == ["age", "height", "weight"]
    assert (first["input"], second["input"]) == ("table row 1", "table row 2")
    assert [file.partition("/")[2] for file in first["files"]][:2] == ["table row 1.gralis", "table row 1.png"]
    model = network("rows")
    mean = np.mean([[31, 1.8, 80], [45, 1.6, 55], [23, 1.7, 68]], axis=0)
    expected = gralis.explain(model, np.array([23, 1.7, 68]), baseline=mean)
    assert second["values"] == pytest.approx(expected.values.tolist(), abs=1e-12)
    assert second["f_baseline"] == pytest.approx(model(torch.tensor(mean)[None]).item(), abs=1e-12)


def test_other_baselines_and_separators(gralis_run, folder) -> None:
    (folder / "semi.csv").write_text("\ufeffage;height;weight\n31;1.8;80\n45;1.6;55\n")
    arguments = ("--data", "semi.csv", "--row", "0", "--model", "net.py:rows", "--json")
    zero = json.loads(gralis_run("explain", *arguments, "--baseline", "0")[1])
    assert zero["provenance"]["baseline"] == "constant 0.0"
    assert zero["features"] == ["age", "height", "weight"]
    drawn = json.loads(gralis_run("explain", *arguments, "--baseline", "sample:2")[1])
    assert drawn["provenance"]["baseline"] == "sample(2 rows, all rows)" or "n=2" in drawn["provenance"]["baseline"]
    code, _, error = gralis_run("explain", *arguments[:-1], "--baseline", "blur")
    assert code == 2
    assert "--baseline must be a number or one of columns, sample:N" in one_sentence(error)


@pytest.mark.parametrize(
    ("content", "arguments", "sentence"),
    [
        ("age,height,weight\n31,,80\n", (), "row 0, column 'height' is empty"),
        ("age,height,weight\n31,nan,80\n", (), "row 0, column 'height' is 'nan', which is not a finite number"),
        ("age,height,weight\n31,Rome,80\n", (), "row 0, column 'height' is 'Rome'"),
        ("age,height,weight\n31,1.8,80\n7,NaN,1\n", (), "row 1, column 'height'"),  # the mean of the column needs it
        ("age,height,weight\n31,80\n", (), "row 0 has 2 cells, but the header names 3 columns"),
        ("age,height\n31,80\n", ("--baseline", "0"), "(1, 2)"),  # the model misses a column
        ("age,height,weight\n31,1.8,80\n", ("--drop", "wieght"), "has no column 'wieght' to drop; it has 'weight'"),
        ("31,1.8,80\n45,1.6,55\n", (), "numbers in its first line"),
        ("age,height,weight\n", (), "has no rows"),
        ("", (), "is empty"),
        ('age,height,weight\n31,"1.8,80\n', (), "cannot be read as CSV"),
        ("age,height,weight\n31,1.8,80\n", ("--row", "5"), "--row must be from 0 to 0"),
    ],
)
def test_what_is_wrong_with_a_table_is_one_sentence(gralis_run, folder, content, arguments, sentence) -> None:
    (folder / "bad.csv").write_text(content)
    row = () if "--row" in arguments else ("--row", "0")
    code, out, error = gralis_run("explain", "--data", "bad.csv", "--model", "net.py:rows", *row, *arguments)
    assert (code, out) == (2, "")
    assert sentence in one_sentence(error)


# --- options ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "Give a picture to explain, or a table"),
        (("photo.jpg", "--data", "table.csv"), "not both"),
        (("--data", "table.csv"), "--data needs --row"),
        (("--data", "no.csv", "--row", "1"), "there is no file no.csv"),
        (("photo.jpg", "--target", "cat"), "'target' parameter"),
        (("photo.jpg", "--target", "7", "--size", "24"), "out of range"),
        (("photo.jpg", "--size", "huge"), "--size must be a whole number"),
        (("photo.jpg", "--mean", "a,b"), "--mean must be a number"),
        (("photo.jpg", "--mean", "1,2"), "mean and std must have one number each, or three"),
        (("photo.jpg", "--std", "0,1,1"), "std must be > 0"),
        (("photo.jpg", "--sigma", "-1"), "'sigma' parameter"),
        (("photo.jpg", "--segments", "0", "--size", "24"), "'n_segments' parameter"),
        (("photo.jpg", "--budget", "3", "--size", "24"), "budget of 3 is too small"),
        (("photo.jpg", "--plan", "magic", "--size", "24"), "'plan' parameter"),
        (("photo.jpg", "--baseline", "black"), "--baseline must be a number or one of zeros"),
        (("photo.jpg", "--labels", "no.txt"), "--labels: no.txt cannot be read"),
        (("photo.jpg", "--out", "net.py"), "The folder net.py cannot be made"),
        (("photo.jpg", "--budget", "many"), "--budget"),
        (("photo.jpg", "--colour", "red"), "--colour"),
    ],
)
def test_bad_options_give_two_and_one_sentence(gralis_run, arguments, sentence) -> None:
    code, out, error = gralis_run("explain", "--model", "net.py:build", *arguments)
    assert (code, out) == (2, "")
    assert sentence in one_sentence(error)


def test_the_exit_code_tells_whether_the_tolerance_was_reached(gralis_run) -> None:
    arguments = ("photo.jpg", "--model", "net.py:build", "--size", "24", "--segments", "12", "--budget", "200")
    code, out, _ = gralis_run("explain", *arguments, "--tolerance", "1e-9")
    assert code == 3
    assert "tolerance 1e-09 not reached" in out
    code, out, _ = gralis_run("explain", *arguments, "--tolerance", "0.9")
    assert code == 0
    assert "tolerance 0.9 reached" in out


def test_debug_shows_where_it_happened(gralis_run) -> None:
    code, _, error = gralis_run("explain", "photo.jpg", "--model", "net.py:build", "--size", "x", "--debug")
    assert code == 2
    assert "Traceback" in error
    assert error.splitlines()[-1].startswith("gralis: --size")


def test_without_matplotlib_the_rest_is_written(gralis_run, folder, monkeypatch) -> None:
    import sys

    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.setitem(sys.modules, name, None)
    arguments = ("--data", "table.csv", "--row", "0", "--drop", "price", "--model", "net.py:rows", "--out", "out")
    code, _, error = gralis_run("explain", *arguments)
    assert code == 0
    assert 'pip install "gralis[plot]"' in one_sentence(error)
    assert (folder / "out/table row 0.gralis").is_file()


# --- doubts ----------------------------------------------------------------------------------------------------------


def test_doubts_are_printed_and_in_the_json(gralis_run, folder) -> None:
    (folder / "steps.py").write_text(
        "import torch\nfrom torch import nn\n\nclass Steps(nn.Module):\n"
        "    def forward(self, z):\n        return (z[:, 0] / 10) ** 2 + 3 * torch.round(z[:, 2])\n\n"
        "def rows():\n    return Steps()\n"
    )
    arguments = ("--data", "table.csv", "--row", "0", "--drop", "price", "--model", "steps.py:rows")
    code, out, _ = gralis_run("explain", *arguments)
    assert code == 0
    printed = [line for line in out.splitlines() if line.startswith("doubt: ")]
    assert any("The gradient of weight is zero" in line for line in printed)
    code, out, _ = gralis_run("explain", *arguments, "--json")
    assert code == 0
    assert [f"doubt: {sentence}" for sentence in json.loads(out)["doubts"]] == printed


def test_an_exact_value_is_printed_as_exact(gralis_run) -> None:
    """Rounding is not printed as an error."""
    arguments = ("--data", "table.csv", "--row", "0", "--drop", "price", "--model", "net.py:rows")
    code, out, _ = gralis_run("explain", *arguments, "--json")
    assert json.loads(out)["stderr"] == [0.0, 0.0, 0.0]
    code, out, _ = gralis_run("explain", *arguments)
    assert code == 0
    assert out.count(" exact ") >= 3
