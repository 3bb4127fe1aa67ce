"""Calls that once raised a raw error, ran for ever or filled the memory: each is one sentence now."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import gralis
from attack.bounded import bounded_memory
from attack.doors import X, model
from gralis import canonical, certificates, faithfulness, methods, targets, text, views
from gralis.cli.config import section
from gralis.report import content_of
from gralis.storage.container import read_arrays, write_arrays

__all__ = ["bounded_memory"]  # a fixture

META = torch.empty(3, device="meta")
SPARSE = torch.ones(3).to_sparse()
SEVERAL = torch.ones(2, 3, 4)
EMPTY = np.array([])
PHI = np.ones(3)
QUIET: dict[str, Any] = {"budget": 40, "progress": False}


@pytest.fixture(scope="module")
def explained() -> dict[str, Any]:
    e = gralis.explain(model, X, **QUIET)
    return {
        "e": e,
        "two": gralis.explain_batch(model, [X, X], **QUIET),
        "pairs": e.interactions(),
        "sampled": gralis.explain(lambda z: z.prod(1), torch.ones(40) * 1.01, budget=400, progress=False),
    }


class Odd:
    """A class is not a function."""


CASES: dict[str, tuple[str, Callable[[dict[str, Any]], object]]] = {
    "pairs.top": ("'k'", lambda of: of["pairs"].top(-np.inf)),
    "pairs.error": ("'coalition'", lambda of: of["pairs"].error(META)),
    "as_it_grew, a tensor": ("'n_steps'", lambda of: of["sampled"].as_it_grew(SPARSE)),
    "as_it_grew, no number": ("'n_steps'", lambda of: of["sampled"].as_it_grew(1e-300)),
    "sweep": ("'sigma'", lambda of: of["e"].sweep(SEVERAL)),
    "sweep_nodes": ("'n_nodes'", lambda of: of["sampled"].sweep_nodes(META)),
    "extend": ("'budget'", lambda of: of["sampled"].extend(10**30)),
    "ranks": ("'by'", lambda of: of["e"].ranks(by=EMPTY)),
    "lime": ("'sigma'", lambda of: of["e"].lime(sigma=1e308)),
    "to_shap": ("'residual'", lambda of: of["e"].to_shap(residual=SEVERAL)),
    "contrast": ("'b'", lambda of: of["two"].contrast(0, 2**70)),
    "plot of nothing": ("'explanation'", lambda of: views.plot(range(3))),
    "rows of nothing": ("'rows'", lambda of: views.plot_rows(META)),
    "token_html of nothing": ("'explanation'", lambda of: views.token_html(True)),
    "no axes": ("'ax'", lambda of: of["e"].sweep([0.5]).plot(ax=5)),
    "new_figure": ("'width'", lambda of: views.new_figure(..., 3)),
    "numerator_bound": ("'delta'", lambda of: certificates.numerator_bound(1.0, 1.0, 3, SPARSE)),
    "ratio_bound": ("one shape", lambda of: certificates.ratio_bound(np.ones(2), np.ones(3), 1.0, 1.0, 3, 0.1)),
    "aggregate_bound": ("'b_n'", lambda of: certificates.aggregate_bound("", 1.0, 1.0, 1.0, 3, 0.1)),
    "bernstein_bound": ("'variance'", lambda of: certificates.bernstein_bound(Path("."), 1.0, 3, 0.1)),
    "empirical_bernstein_bound": ("'m'", lambda of: certificates.empirical_bernstein_bound(1.0, 1.0, set(), 0.1)),
    "quadrature_bound": ("'quadrature'", lambda of: certificates.quadrature_bound(EMPTY, 1, np.ones(3), None)),
    "kernel_range": ("'kernel'", lambda of: certificates.kernel_range(b"", np.ones(3))),
    "distances": ("'squared_distance'", lambda of: certificates.kernel_range(gralis.Gaussian(0.5), [[]])),
    "calibrate": ("'budget'", lambda of: certificates.calibrate(model, X, budget=10**30)),
    "calibrate two": ("'target'", lambda of: certificates.calibrate(model, X, target=[None])),
    "over": ("'scores'", lambda of: faithfulness.over(3)),
    "level": ("'level'", lambda of: faithfulness.road_gap(model, X, PHI, level=EMPTY)),
    "normalise": ("'normalise'", lambda of: faithfulness.deletion(model, X, PHI, normalise=SEVERAL)),
    "infidelity": ("'normalise'", lambda of: faithfulness.infidelity(model, X, PHI, normalise=SEVERAL)),
    "removed": ("'removed'", lambda of: faithfulness.infidelity(model, X, PHI, removed=SPARSE)),
    "perturbations": ("'n_perturbations'", lambda of: faithfulness.infidelity(model, X, PHI, n_perturbations=2**70)),
    "radius": ("'radius'", lambda of: faithfulness.max_sensitivity(model, X, PHI, method="occlusion", radius=1e308)),
    "runs": ("'n_runs'", lambda of: faithfulness.stability(model, X, PHI, method="occlusion", n_runs=2**70)),
    "a class as a method": ("'method'", lambda of: faithfulness.stability(model, X, PHI, method=Odd)),
    "others": ("'others'", lambda of: faithfulness.rank_agreement(model, X, PHI, others=np.array(1))),
    "batch_size": ("'batch_size'", lambda of: methods.occlusion(model, X, batch_size=EMPTY)),
    "batch_size of hoeffding": ("'batch_size'", lambda of: gralis.hoeffding(model, X, EMPTY, batch_size=EMPTY)),
    "nodes": ("'n_nodes'", lambda of: methods.integrated_gradients(model, X, n_nodes=10**30)),
    "nodes of a table": ("'n_nodes'", lambda of: canonical.gralis(model, X, n_nodes=10**5, quadrature="fejer")),
    "names": ("'names'", lambda of: methods.run(-1, model, X)),
    "options": ("'options'", lambda of: methods.run(["gralis"], model, X, options=1.0)),
    "masks": ("'masks'", lambda of: canonical.lime(model, X, masks=META)),
    "support": ("'support'", lambda of: canonical.lime(model, X, support=META)),
    "select": ("failed", lambda of: targets.select("auto", Odd)),
    "progress": ("'progress'", lambda of: gralis.explain(model, X, progress=Odd)),
    "extra": ("'extra'", lambda of: gralis.features.patches((3, 4), (1, 1), extra=10**30)),
    "SobolG": ("'a'", lambda of: gralis.games.SobolG([1, [2]])),
    "text.split": ("'text'", lambda of: text.split(35, "words")),
    "grain": ("'grain'", lambda of: text.split("a b", EMPTY)),
    "text.load": ("'path'", lambda of: text.load(META)),
    "cache": ("'cache'", lambda of: text.remote(lambda prompts: prompts, cache=[2.5])),
    "a folder as a cache": ("'cache'", lambda of: text.remote(lambda prompts: prompts, cache=".").ask(["a"], "b")),
    "conversation": ("'messages'", lambda of: text.conversation(None, True)),
}


@pytest.mark.filterwarnings("ignore")  # those of shap
@pytest.mark.parametrize("name", CASES)
def test_what_was_a_raw_error_is_a_sentence(name, explained) -> None:
    parameter, call = CASES[name]
    with pytest.raises(gralis.GralisError, match=parameter):
        call(explained)


def test_a_results_folder_answers_in_sentences(tmp_path) -> None:
    options = {"out": tmp_path / "run", **QUIET}
    results = gralis.explain_many(model, torch.ones(2, 3) * 2, **options)
    importance = gralis.global_importance(results)
    for parameter, call in {
        "'block'": lambda: results.kept(EMPTY),
        "'simultaneous'": lambda: importance.half_widths(simultaneous=SEVERAL),
        "'ax'": lambda: importance.plot(ax=5),
        "'classes'": lambda: gralis.gallery(results, tmp_path / "page", classes=object(), progress=False),
    }.items():
        with pytest.raises(gralis.GralisError, match=parameter):
            call()


def test_more_evaluations_than_an_int64_can_count() -> None:
    options = {"budget": 10**30, "plan": "permutation", "max_seconds": 2.0, "progress": False}
    assert gralis.explain(lambda z: z.prod(1), torch.ones(12) * 1.1, **options).cost.n_gradients > 0


@pytest.mark.parametrize("content", [b"\xe0\xff\n", b"[" * 100_000 + b"\n"])
def test_a_cache_that_is_no_text_is_left_out(tmp_path, content) -> None:
    (tmp_path / "cache").write_bytes(content)
    known = text.remote(lambda prompts: [[-1.0] for _ in prompts], cache=tmp_path / "cache")
    assert [reply.logprobs for reply in known.ask(["a"], "b")] == [(-1.0,)]


def test_a_deep_configuration_is_one_sentence(tmp_path) -> None:
    (tmp_path / "deep.toml").write_text("a = " + "[" * 100_000)
    with pytest.raises(gralis.GralisError, match="cannot be read as TOML"):
        section(tmp_path / "deep.toml", "explain", {}, [])


READERS: dict[str, Callable[[str], object]] = {
    "load": gralis.load,
    "text.load": text.load,
    "content_of": content_of,
    "Results": gralis.many.Results,
    "Importance.load": gralis.many.Importance.load,
    "table": lambda path: list(gralis.many.table(path)),
    "folder": gralis.many.folder,
    "explain_many": lambda path: gralis.explain_many(model, path, out="results"),
    "out": lambda path: gralis.explain_many(model, torch.ones(2, 3) * 2, out=path, **QUIET),
    "gallery": lambda path: gralis.gallery(path, "page"),
}


@pytest.mark.parametrize("path", ["a" * 5000, "a/" * 3000])
@pytest.mark.parametrize("name", READERS)
def test_a_path_that_is_too_long_for_the_system_is_one_sentence(tmp_path, monkeypatch, name, path) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(gralis.GralisError, match="must be a path that the system can look up"):
        READERS[name](path)


@pytest.mark.parametrize("number", [10**400, -(10**400), float("inf"), float("nan")])
@pytest.mark.parametrize("name", ["f_x", "price", "model_rounding", "model_noise", "cost"])
def test_a_number_of_a_file_that_no_float_can_hold_is_one_sentence(tmp_path, explained, name, number) -> None:
    arrays, meta = read_arrays(explained["e"].save(tmp_path / "why.gralis"), "explanation")
    meta[name] = {**meta["cost"], "seconds": number} if name == "cost" else number
    with pytest.raises(gralis.GralisError, match=f"{name}.* is out of range"):
        gralis.load(write_arrays(tmp_path / "why.gralis", arrays, meta))


@pytest.mark.parametrize("name", ["values", "f_baselines", "baseline_weights", "ledger.value", "ledger.gradient"])
def test_a_number_of_a_file_whose_square_overflows_is_one_sentence(tmp_path, explained, name) -> None:
    arrays, meta = read_arrays(explained["e"].save(tmp_path / "why.gralis"), "explanation")
    changed = {**arrays, name: np.full_like(arrays[name], 1e160)}
    with pytest.raises(gralis.GralisError, match=rf"{name}.* holds a number beyond 1e\+150"):
        gralis.load(write_arrays(tmp_path / "why.gralis", changed, meta))


def test_an_output_whose_square_overflows_is_one_sentence() -> None:
    """Such numbers passed, and tables and reports of them raised errors of LAPACK."""
    with pytest.raises(gralis.ModelError, match=r"output is 1e\+160, first at .* scale the output of the model"):
        gralis.explain(lambda z: 1e160 * z.sum(1), torch.ones(1, dtype=torch.float64))
    e = gralis.explain(lambda z: 1e149 * (z**2).sum(1), torch.ones(4, dtype=torch.float64))
    assert "e+149" in repr(e)


def test_a_zip_of_a_version_that_does_not_exist_is_one_sentence(tmp_path, explained) -> None:
    path = Path(explained["e"].save(tmp_path / "why.gralis"))
    content = bytearray(path.read_bytes())
    content[content.find(b"PK\x01\x02") + 6] = 193  # the version that is needed to read the first part
    path.write_bytes(content)
    with pytest.raises(gralis.GralisError, match="not a whole gralis file"):
        gralis.load(path)
