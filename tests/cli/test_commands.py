"""The other commands, gralis.toml, --help, and how a command ends."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import gralis
from cli.workshop import network
from gralis import demo
from gralis.cli import exit_codes, main
from gralis.cli.output import OutputFolder, safe_name
from gralis.errors import GralisError
from gralis.storage.container import write_whole

ROW = ("explain", "--data", "table.csv", "--row", "0", "--drop", "price", "--model", "net.py:rows")


def sentence(error: str) -> str:
    assert error.startswith("gralis: ")
    assert error.count("\n") == 1, error
    return error.removeprefix("gralis: ").rstrip()


# --- replay ----------------------------------------------------------------------------------------------------------


def test_replay_says_same_for_the_model_and_different_for_another(gralis_run) -> None:
    code, out, error = gralis_run("replay", "rows.gralis", "--model", "net.py:rows")
    assert (code, error) == (0, "")
    assert out.startswith("Same: all 5 numbers agree within ")
    Path("other.py").write_text(Path("net.py").read_text().replace("manual_seed(1)", "manual_seed(2)"))
    code, out, error = gralis_run("replay", "rows.gralis", "--model", "other.py:rows")
    assert (code, error) == (1, "")
    assert re.match(r"Different: the hash of the model differs, \d of 5 numbers differ, most of all: ", out)
    code, out, _ = gralis_run("replay", "rows.gralis", "--model", "other.py:rows", "--json")
    found = json.loads(out)
    assert (code, found["same"], found["hashes"], found["file"]) == (1, False, ["model"], "rows.gralis")


def test_what_explain_wrote_can_be_replayed(gralis_run) -> None:
    assert gralis_run(*ROW, "--out", "out")[0] == 0
    code, out, _ = gralis_run("replay", "out/table row 0.gralis", "--model", "net.py:rows")
    assert (code, out[:5]) == (0, "Same:")


def test_replay_of_a_file_that_is_none_is_one_sentence(gralis_run, folder) -> None:
    whole = (folder / "rows.gralis").read_bytes()
    (folder / "torn.gralis").write_bytes(whole[:-200])
    for name, said in (("none.gralis", "There is no file none.gralis"), ("torn.gralis", "is not a whole gralis file")):
        code, out, error = gralis_run("replay", name, "--model", "net.py:rows")
        assert (code, out) == (2, "")
        assert said in sentence(error)


# --- report, verify, demo --------------------------------------------------------------------------------------------


def test_report_is_written_where_it_was_asked_for(gralis_run, folder) -> None:
    assert gralis_run("report", "rows.gralis")[:2] == (0, "Written to rows.html\n")
    assert gralis_run("report", "rows.gralis", "--out", "why.html")[:2] == (0, "Written to why.html\n")
    for name in ("rows.html", "why.html"):
        assert gralis.load(folder / name).values.tolist() == gralis.load(folder / "rows.gralis").values.tolist()
    code, out, error = gralis_run("report", "rows.gralis", "--out", "no/folder/why.html")
    assert (code, out) == (2, "")
    assert "Cannot write no/folder/why.html: the folder no/folder does not exist" in sentence(error)


def test_the_report_of_a_picture_shows_the_picture_and_the_label(gralis_run, monkeypatch) -> None:
    from PIL import Image

    seen = []
    monkeypatch.setattr(gralis.Explanation, "report", lambda self, path, **shown: seen.append(shown))
    picture = np.asarray(Image.open("other.png").crop((6, 0, 54, 48)))  # 48 x 60: its square centre, unscaled
    small = ("--size", "48", "--segments", "5", "--budget", "120", "--labels", "names.txt", "--target", "0")
    assert gralis_run("explain", "other.png", "--model", "net.py:build", *small, "--out", "out")[0] == 0
    assert gralis_run("report", "out/other.gralis")[0] == 0
    assert [shown["label"] for shown in seen] == ["cat", "cat"]
    for shown in seen:
        assert np.allclose(shown["image"], picture / 255, atol=1e-6)


def test_verify_prints_rows_and_fails_with_one(gralis_run, monkeypatch) -> None:
    code, out, _ = gralis_run("verify", "--only", "paths", "--json")
    found = json.loads(out)
    assert (code, found["holds"], [s["name"] for s in found["sections"]]) == (0, True, ["paths"])
    code, out, _ = gralis_run("verify", "--only", "paths")
    assert (code, "all hold" in out) == (0, True)
    code, _, error = gralis_run("verify", "--only", "poetry")
    assert code == 2
    assert "'poetry'" in sentence(error)
    whole = gralis.verify(["paths"])
    row = replace(whole.rows[0], holds=False)
    broken = replace(whole, sections=(replace(whole.sections[0], rows=(row,)),))
    monkeypatch.setattr("gralis.paper.verify", lambda only: broken)
    assert gralis_run("verify")[0] == 1


def test_demo_hands_its_options_on(gralis_run, monkeypatch) -> None:
    calls = []
    monkeypatch.setattr("gralis.demo.run", lambda *given, **named: calls.append((given, named)))
    assert gralis_run("demo", "--image", "camera", "--budget", "99", "--quiet")[0] == 0
    assert calls == [((Path("demo-output"), "camera", 99, 30, 0), {"progress": False})]


# --- gralis.toml -----------------------------------------------------------------------------------------------------


def test_options_come_from_the_file_and_the_command_line_wins(gralis_run, folder) -> None:
    lines = (
        'model = "net.py:rows"',
        'data = "table.csv"',
        "row = [1, 2]",
        'drop = ["price"]',
        "json = true",
        "seed = 5",
    )
    (folder / "gralis.toml").write_text("\n".join(["[explain]", *lines, "max-seconds = 50", 'baseline = "0"']))
    code, out, error = gralis_run("explain", "--seed", "7")
    assert (code, error) == (0, "")
    found = [json.loads(line) for line in out.splitlines()]
    assert [each["input"] for each in found] == ["table row 1", "table row 2"]
    first = found[0]["provenance"]
    assert (first["seed"], first["max_seconds"], first["baseline"]) == (7, 50.0, "constant 0.0")
    assert gralis_run("verify", "--only", "paths")[0] == 0  # a section of another command does not matter


def test_another_file_can_be_named_and_lists_stand_for_commas(gralis_run, folder) -> None:
    (folder / "mine.toml").write_text("[explain]\nmean = [0.5, 0.5, 0.5]\nstd = [1, 1, 1]\nsize = 24\nsegments = 3\n")
    arguments = ("photo.jpg", "--model", "net.py:build", "--json")
    first = json.loads(gralis_run("explain", *arguments, "--config", "mine.toml")[1])
    same = ("--mean", "0.5,0.5,0.5", "--std", "1,1,1", "--size", "24", "--segments", "3")
    second = json.loads(gralis_run("explain", *arguments, *same)[1])
    assert first["provenance"]["hashes"] == second["provenance"]["hashes"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("[explain]\ntolerence = 0.1\n", "gralis explain has no option 'tolerence'; did you mean tolerance"),
        ("[explian]\nseed = 1\n", "there is no section [explian]; did you mean explain"),
        ("seed = 1\n", "there is no section [seed]"),
        ("[explain]\nallow-pickle = true\n", "allow-pickle can only be given on the command line"),
        ("[explain]\njson = 3\n", "json must be true or false"),
        ("[explain]\nseed = true\n", "seed must be text or a number"),
        ("[explain]\nseed = 1979-05-27\n", "seed must be text, a number, or a list of these"),
        ("[explain]\nseed = 'many'\n", "--seed"),
        ("[explain\n", "gralis.toml cannot be read as TOML"),
    ],
)
def test_what_is_wrong_with_the_file_is_one_sentence(gralis_run, folder, content, said) -> None:
    (folder / "gralis.toml").write_text(content)
    code, out, error = gralis_run(*ROW)
    assert (code, out) == (2, "")
    assert said in sentence(error)


def test_a_file_that_is_named_must_be_there(gralis_run) -> None:
    code, _, error = gralis_run(*ROW, "--config", "none.toml")
    assert code == 2
    assert "none.toml cannot be read" in sentence(error)


# --- help ------------------------------------------------------------------------------------------------------------


def examples(out: str) -> list[str]:
    """The command lines in the text of --help."""
    return [line.strip() for line in out.splitlines() if line.strip().startswith("gralis ")]


@pytest.mark.parametrize("name", ["explain", "report", "replay"])
def test_the_examples_of_help_run(gralis_run, folder, name, monkeypatch) -> None:
    monkeypatch.setattr(
        gralis.Explanation, "report", getattr(gralis.Explanation, "report", lambda self, path, **_: None), raising=False
    )
    free = ({0: torch.export.Dim("batch")},)
    code, out, _ = gralis_run(name, "--help")
    assert code == 0
    lines = examples(out)
    assert len(lines) == {"explain": 10, "report": 2, "replay": 2}[name]
    if name == "explain":
        program = torch.export.export(network(), (torch.zeros(2, 3, 24, 24),), dynamic_shapes=free)
        torch.export.save(program, folder / "net.pt2")
    quarters = gralis.features.grid((3, 8, 8), 4)
    gralis.explain(network(), torch.ones(3, 8, 8), target=0, features=quarters).save("why.gralis")
    # Small pictures and budgets, so that the examples take no time; what a line gives itself wins.
    (folder / "gralis.toml").write_text("[explain]\nsize = 24\nsegments = 5\nbudget = 400\n")
    for line in lines:
        code, out, error = gralis_run(*shlex.split(line)[1:])
        assert (code, error) == (0, ""), line
        assert out


@pytest.mark.parametrize("command", ["explain", "batch"])
def test_help_lists_the_plans_of_the_library(gralis_run, command) -> None:
    out = " ".join(gralis_run(command, "--help")[1].replace("│", " ").split())
    assert f"How coalitions are sampled: {', '.join(gralis.plans.names()[:6])}" in out


def test_both_demo_commands_take_the_same_options(gralis_run, capsys) -> None:
    out = gralis_run("demo", "--help")[1]
    with pytest.raises(SystemExit):
        demo.main(["--help"])
    beside = capsys.readouterr().out
    for text in (out, beside):
        words = " ".join(text.replace("│", " ").split())
        for name, option in demo.OPTIONS.items():
            assert f"--{name}" in words
            assert option.help in words


def test_help_names_the_commands_and_no_command_is_help(gralis_run) -> None:
    code, out, _ = gralis_run("--help")
    assert code == 0
    for name in ("demo", "explain", "batch", "gallery", "report", "verify", "replay"):
        assert re.search(rf"\b{name}\b", out)
    assert gralis_run("--version")[:2] == (0, f"gralis {gralis.__version__}\n")
    code, out, error = gralis_run()
    assert (code, "Usage: gralis" in out, error) == (0, True, "")
    code, out, error = gralis_run("explain")
    assert (code, out) == (2, "")
    assert "--model" in sentence(error)
    code, _, error = gralis_run("explane")
    assert code == 2
    assert "explane" in sentence(error)


def test_a_missing_package_is_one_sentence(monkeypatch, capsys) -> None:
    monkeypatch.setitem(sys.modules, "typer", None)
    assert main(["--help"]) == 2
    assert capsys.readouterr().err == 'gralis: the command line needs typer: pip install "gralis[cli]".\n'


# --- files -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["../../x.png", "/etc/passwd", "..", ".", "", "...", "a/../..", "..\\..\\x.png", "\0x\n"]
)
def test_no_name_leaves_the_folder(tmp_path, name) -> None:
    folder = OutputFolder(tmp_path / "out")
    path = folder.stem(name)
    assert path.resolve().parent == folder.path.resolve()
    assert path.name not in ("", ".", "..")
    assert path.name.isprintable()
    assert folder.stem(name) != path  # the same name again is another file


def test_long_names_are_cut() -> None:
    assert len(safe_name("ä" * 300 + ".png").encode()) <= 100


def test_a_file_is_there_whole_or_not_at_all(tmp_path) -> None:
    path = tmp_path / "result.txt"
    write_whole(path, lambda temporary: temporary.write_text("first"))

    def half(temporary: Path) -> None:
        temporary.write_text("sec")
        raise OSError(28, "No space left on device")

    with pytest.raises(GralisError, match=r"Cannot write .*: No space left on device"):
        write_whole(path, half)
    assert [p.name for p in tmp_path.iterdir()] == ["result.txt"]
    assert path.read_text() == "first"
    link = tmp_path / "link.txt"
    link.symlink_to(path)
    write_whole(link, lambda temporary: temporary.write_text("third"))  # the link is replaced, not what it points to
    assert (link.read_text(), path.read_text(), link.is_symlink()) == ("third", "first", False)


# --- endings ---------------------------------------------------------------------------------------------------------


def test_what_nobody_expected_is_still_one_sentence(gralis_run, monkeypatch) -> None:
    def fail(*_, **__):
        raise RuntimeError("out of\nluck")

    monkeypatch.setattr("gralis.cli.explain_run.explain", fail)
    code, out, error = gralis_run(*ROW)
    assert (code, out) == (2, "")
    assert sentence(error) == "unexpected RuntimeError: out of luck; --debug shows where."


def test_progress_has_rate_and_time_left_on_a_terminal_unless_quiet(gralis_run, monkeypatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr("gralis.evaluation.progress.SHOWN_AFTER", 0.0)
    code, out, error = gralis_run(*ROW, "--row", "1")
    assert code == 0
    assert "[1/2] table row 0" in error
    assert re.search(r"gralis: rays: .*\d+/\d+ \[\d\d:\d\d<", error)
    assert "point/s" in error
    assert "point/s" not in out
    assert gralis_run(*ROW, "--row", "1", "--quiet")[2] == ""


def test_ctrl_c_is_an_ending(gralis_run, monkeypatch) -> None:
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("gralis.cli.explain_run.explain", interrupt)
    code, _, error = gralis_run(*ROW)
    assert code == 130
    assert sentence(error).startswith("interrupted")


def test_warnings_are_one_line_on_standard_error(gralis_run, monkeypatch) -> None:
    import warnings

    def warn(*_, **__):
        warnings.warn("poorly covered", UserWarning, stacklevel=1)
        return gralis.load("rows.gralis")

    monkeypatch.setattr("gralis.cli.explain_run.explain", warn)
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        _, _, error = gralis_run(*ROW)
    assert error == "gralis: warning: poorly covered\n"


def test_exit_codes_are_what_the_manual_says() -> None:
    assert (exit_codes.DONE, exit_codes.NO, exit_codes.BAD, exit_codes.NOT_REACHED) == (0, 1, 2, 3)
    assert exit_codes.code_and_sentence(GralisError("a sentence.")) == (2, "a sentence.")
    assert exit_codes.code_and_sentence(MemoryError())[0] == 2


def test_numbers_that_json_lacks_become_null(gralis_run, monkeypatch) -> None:
    known = gralis.load("rows.gralis")
    odd = replace(known, f_x=float("nan"), estimate=replace(known.estimate, values=np.array([1.0, np.inf, 2.0])))
    monkeypatch.setattr("gralis.cli.explain_run.explain", lambda *_, **__: odd)
    _, out, _ = gralis_run(*ROW, "--json")
    found = json.loads(out, parse_constant=lambda name: pytest.fail(name))
    assert (found["f_x"], found["values"]) == (None, [1.0, None, 2.0])


def test_the_folder_is_not_touched_without_out(gralis_run, folder) -> None:
    shutil.rmtree(folder / "__pycache__", ignore_errors=True)
    before = sorted(path.name for path in folder.iterdir())
    assert gralis_run(*ROW)[0] == 0
    assert sorted(path.name for path in folder.iterdir() if path.name != "__pycache__") == before
