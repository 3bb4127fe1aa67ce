"""`gralis bench`: what is wrong is said before the run, what failed is said after it, and the exit code tells."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from bench.workshop import furnish
from gralis.bench import Pictures, read_labels
from gralis.cli import main
from gralis.files.images import Preprocessing


@pytest.fixture
def bench(tmp_path, monkeypatch, capsys):
    """Run the command on three pictures; exit code, standard output and standard error."""
    furnish(tmp_path)
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[int, str, str]:
        given = ["--images", "photos", "--labels", "labels.csv", "--model", "net.py:build", "--out", "out"]
        small = ["--size", "16", "--segments", "6", "--budget", "150", "--workers", "1", "--quiet"]
        code = main(["bench", *given, *small, *arguments])
        return code, *capsys.readouterr()

    return run


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--metrics deletion:foo", "'metrics' .* after ':'.* Got 'deletion:foo'"),
        ("--metrics stability:noisy-linear", "'metrics' .* after ':'"),
        ("--methods random:blur", "'methods'"),
        ("--methods gradcam --metrics gini --layer nolayer", "nolayer"),
        ("--group nope", "--group .* file, label, patient. Got 'nope'"),
        ("--limit 0", "--limit.* 1"),
    ],
)
def test_what_cannot_work_is_said_before_the_run(bench, options, said):
    code, out, err = bench(*options.split())
    assert code == 2
    assert out == ""
    assert err.count("\n") == 1
    assert re.search(said, err), err
    assert not list(Path("out/images").glob("*.json"))


def test_a_number_after_the_colon_replaces_by_it(bench):
    code, out, err = bench("--methods", "occlusion", "--metrics", "deletion,deletion:0", "--json")
    assert (code, err) == (0, "")
    by_name, by_number = (json.loads(line)["mean"] for line in out.splitlines())
    assert by_name == by_number


def test_what_failed_on_every_image_is_said_once_and_changes_the_exit_code(bench):
    code, out, err = bench("--methods", "occlusion,random", "--metrics", "gini,deletion", "--budget", "1")
    assert code == 2
    assert err.count("\n") == 1
    assert "occlusion failed on 3 of 3 images: Occlusion takes one forward for every feature" in err
    assert "random" in out


def test_a_metric_that_fails_is_named_with_its_method(bench):
    Path("net.py").write_text(Path("net.py").read_text().replace("x)[:, 0", "0 * x)[:, 0"))
    code, out, err = bench("--methods", "occlusion", "--metrics", "gini,completeness")
    assert code == 2
    assert err.startswith("gralis: completeness of occlusion failed on 3 of 3 images: F(x) = F(x')")
    assert err.count("\n") == 1
    assert "gini" in out


def test_a_method_without_a_ledger_goes_on_where_none_can_be_made(bench):
    code, out, err = bench("--methods", "gralis,occlusion,random", "--metrics", "gini", "--budget", "7", "--json")
    assert code == 2
    assert {json.loads(line)["method"] for line in out.splitlines()} == {"occlusion", "random"}
    assert "gralis failed on 3 of 3 images" in err
    assert "budget" in err


def test_masks_beside_the_pictures_are_annotations(bench):
    """A mark over the left half, once as 0/1, once in a dark colour; the third picture has none."""
    from PIL import Image

    marked = np.zeros((32, 32, 3), dtype=np.uint8)
    marked[:, :16] = (0, 0, 1)
    Image.fromarray(marked).save("photos/m0.png")
    Image.fromarray(marked[..., 2]).save("photos/m1.png")
    Path("labels.csv").write_text("file,annotation\np0.png,m0.png\np1.png,m1.png\np2.png,\n")
    options = ("--methods", "occlusion", "--metrics", "pointing_game,iou,mass_inside,gini", "--json")
    code, out, err = bench(*options)
    assert (code, err) == (0, "")
    found = {one["metric"]: one for one in map(json.loads, out.splitlines())}
    assert {name: one["n_images"] for name, one in found.items()} == {
        **dict.fromkeys(("pointing_game", "iou", "mass_inside"), 2),
        "gini": 3,
    }
    item = Pictures(Path("photos"), read_labels(Path("labels.csv")), Preprocessing(16, 16)).load(0)
    assert item.annotation.tolist() == [[True] * 8 + [False] * 8] * 16
    Image.fromarray(marked[:, ::-1]).save("photos/m0.png")  # masks are part of what is measured
    Image.fromarray(marked[:, ::-1, 2]).save("photos/m1.png")
    _, out, _ = bench(*options)
    left, right = (found["mass_inside"]["mean"], json.loads(out.splitlines()[2])["mean"])
    assert left + right == pytest.approx(1.0)
    assert left != pytest.approx(right)
    Image.fromarray(marked[:16]).save("photos/m0.png")
    code, _, err = bench(*options)
    assert code == 2
    assert "m0.png is 32 x 16 pixels, and p0.png 32 x 32" in err


def test_a_metric_of_annotations_needs_their_column(bench):
    code, _, err = bench("--metrics", "gini,iou")
    assert code == 2
    assert "iou needs a column 'annotation'" in err


def test_json_has_null_where_there_is_no_number(bench):
    _, out, _ = bench("--methods", "random", "--metrics", "gini", "--limit", "1", "--json")
    (line,) = out.splitlines()
    found = json.loads(line, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert found["low"] is None


def test_a_changed_line_of_the_labels_is_measured_again(bench):
    options = ("--methods", "random", "--metrics", "gini")
    bench(*options)
    Path("labels.csv").write_text(Path("labels.csv").read_text().replace("p1.png,one,0", "p1.png,two,7"))
    before = {path: path.stat().st_mtime_ns for path in Path("out/images").iterdir()}
    assert bench(*options)[0] == 0
    assert "p1.png,7,random,gini" in Path("out/scores.csv").read_text()
    assert sum(path.stat().st_mtime_ns != when for path, when in before.items()) == 1


def test_one_bad_line_of_the_labels_is_that_image_s_failure(bench):
    Path("labels.csv").write_text(Path("labels.csv").read_text() + "../net.py,one,9\n")
    code, out, err = bench("--methods", "random", "--metrics", "gini", "--json")
    assert code == 2
    assert json.loads(out)["n_images"] == 3
    assert err == "gralis: ../net.py: ../net.py lies outside the folder photos.\n"


def test_a_nul_in_the_labels_is_one_sentence(bench):
    Path("labels.csv").write_text("file,label\np0.png,on\0e\n")
    code, _, err = bench("--methods", "random", "--metrics", "gini")
    assert code == 2
    assert err.count("\n") == 1
    assert "labels.csv cannot be read as CSV" in err
