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


def test_bad_input_is_one_sentence(gralis_run, folder) -> None:
    for arguments, sentence in (
        (("--text", "good", "--model", "net.py:build"), "a factory that returns (model, tokenizer)"),
        (("--text", "", "--model", "net.py:classifier"), "at least one word"),
        (("--text", "good", "--prompt", "prompt.txt", "--model", "net.py:writer"), "Give one of pictures"),
        (("--prompt", "nowhere.txt", "--model", "net.py:writer"), "cannot be read as text"),
    ):
        code, _, error = gralis_run("explain", *arguments)
        assert code == 2
        assert sentence in error
        assert error.count("\n") == 1
