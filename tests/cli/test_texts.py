"""`gralis explain --text` and `--prompt`: the numbers of the library, files, and one sentence for bad input."""

from __future__ import annotations

import json

import numpy as np

import gralis
from text_models import network, tokenizer


def test_a_text_gets_the_numbers_of_the_library(gralis_run, folder) -> None:
    run = ("explain", "--text", "the film was good", "--model", "net.py:classifier", "--target", "1")
    code, out, error = gralis_run(*run, "--json", "--budget", "120", "--out", "out")
    assert (code, error) == (0, "")
    found = json.loads(out)
    e = gralis.text.explain(network("bert"), tokenizer(), "the film was good", target=1, budget=120)
    np.testing.assert_allclose(found["values"], e.values, atol=1e-6)
    assert gralis.load("out/text.gralis").names == ("the", "film", "was", "good")
    code, out, error = gralis_run(*run, "--budget", "120")
    assert (code, error) == (0, "")
    assert "film" in out


def test_a_prompt_gets_a_matrix_and_a_page(gralis_run, folder) -> None:
    run = ("explain", "--prompt", "prompt.txt", "--model", "net.py:writer", "--answer", " good ?", "--out", "out")
    code, out, error = gralis_run(*run, "--json")
    assert (code, error) == (0, "")
    found = json.loads(out)
    prompt = (folder / "prompt.txt").read_text()
    g = gralis.text.explain_generation(network("gpt2"), tokenizer(bos=False), prompt, " good ?")
    np.testing.assert_allclose(found["values"], g.values, atol=1e-6)
    assert gralis.text.load("out/prompt.zip").names == ("passage 1", "passage 2")
    assert "good" in (folder / "out" / "prompt.html").read_text()


def test_the_defaults_are_those_of_the_library(gralis_run, folder) -> None:
    """The class with the largest output, and a budget, however many words there are."""
    text = "the film was good and the book was very bad but it is not long"
    code, out, error = gralis_run("explain", "--text", text, "--model", "net.py:classifier", "--json")
    assert (code, error) == (0, "")
    found = json.loads(out)
    e = gralis.text.explain(network("bert"), tokenizer(), text, target="predicted")
    assert found["provenance"]["budget"] == 1024
    assert found["cost"]["n_gradients"] <= 1024
    np.testing.assert_allclose(found["values"], e.values, atol=1e-6)
    run = ("explain", "--text", text, "--model", "net.py:classifier", "--target", "probability(1)", "--baseline", "7")
    found = json.loads(gralis_run(*run, "--json")[1])
    e = gralis.text.explain(network("bert"), tokenizer(), text, target=gralis.targets.probability(1), absent=7)
    np.testing.assert_allclose(found["values"], e.values, atol=1e-6)


def test_an_alternative_answer(gralis_run, folder) -> None:
    run = (
        "explain",
        "--prompt",
        "prompt.txt",
        "--model",
        "net.py:writer",
        "--answer",
        " good",
        "--alternative",
        " bad",
    )
    code, out, _ = gralis_run(*run)
    assert code == 0
    assert "against 'bad'" in out


def test_a_plan_that_is_named_is_taken_and_answers_have_a_length(gralis_run, folder) -> None:
    run = ("explain", "--prompt", "prompt.txt", "--model", "net.py:writer", "--max-new-tokens", "2", "--json")
    found = json.loads(gralis_run(*run, "--plan", "shared")[1])
    assert len(found["tokens"]) == 2
    assert found["total"]["cost"]["n_gradients"] > 0
    assert json.loads(gralis_run(*run)[1])["total"]["cost"]["n_gradients"] == 0
    words = ("explain", "--text", "the film", "--model", "net.py:classifier", "--target", "1", "--baseline", "removed")
    code, _, error = gralis_run(*words, "--plan", "shared")
    assert code == 2
    assert "'values' or 'endpoint' where absent features are removed" in error


def test_texts_are_computed_again_and_reported_from_their_files(gralis_run, folder) -> None:
    text = ("explain", "--text", "the film was good", "--model", "net.py:classifier", "--target", "1", "--out", "out")
    prompt = ("explain", "--prompt", "prompt.txt", "--model", "net.py:writer", "--answer", " good ?", "--out", "out")
    assert gralis_run(*text, "--budget", "120")[0] == gralis_run(*prompt)[0] == 0
    for file, factory in (("out/text.gralis", "classifier"), ("out/prompt.zip", "writer")):
        code, out, _ = gralis_run("replay", file, "--model", f"net.py:{factory}")
        assert (code, out.split(":")[0]) == (0, "Same")
    code, out, _ = gralis_run("replay", "out/text.gralis", "--model", "net.py:other_classifier", "--json")
    verdict = json.loads(out)
    assert code == 1
    assert verdict["hashes"] == ["model"]
    assert verdict["differences"]
    code, _, error = gralis_run("replay", "out/prompt.zip", "--model", "net.py:build")
    assert code == 2
    assert "A text needs a factory that returns (model, tokenizer)" in error
    (folder / "out" / "prompt.html").unlink()
    assert gralis_run("report", "out/prompt.zip")[0] == 0
    assert "good" in (folder / "out" / "prompt.html").read_text()


def test_bad_input_is_one_sentence(gralis_run, folder) -> None:
    for arguments, sentence in (
        (("--text", "good", "--model", "net.py:build"), "a factory that returns (model, tokenizer)"),
        (("--text", "", "--model", "net.py:classifier"), "at least one word"),
        (("--text", "good", "--prompt", "prompt.txt", "--model", "net.py:writer"), "Give one of pictures"),
        (("--prompt", "nowhere.txt", "--model", "net.py:writer"), "cannot be read as text"),
        (("--prompt", "prompt.txt", "--model", "net.py:writer", "--target", "1"), "--target has no meaning together"),
        (("--text", "good", "--model", "net.py:classifier", "--answer", "x"), "--answer has no meaning together"),
        (
            ("--text", "good", "--model", "net.py:classifier", "--max-new-tokens", "3"),
            "--max-new-tokens has no meaning",
        ),
        (("--prompt", "prompt.txt", "--model", "net.py:writer", "--max-new-tokens", "0"), "a whole number >= 1"),
        (("--text", "good", "--model", "net.py:classifier", "--layer", "x"), "--layer has no meaning together"),
        (("--text", "good", "--model", "net.py:classifier", "--target", "GOOD"), "one of the labels 'LABEL_0'"),
    ):
        code, _, error = gralis_run("explain", *arguments)
        assert code == 2
        assert sentence in error
        assert error.count("\n") == 1
