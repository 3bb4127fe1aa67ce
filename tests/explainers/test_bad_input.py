"""Whatever is asked of a ledger that it cannot give: one sentence that says what is wrong and what would do."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from gralis import Explanation, GralisError, baselines, explain, models
from gralis.games import appendix_e
from reference import network, point

NAN, INF = math.nan, math.inf


@pytest.fixture(scope="module")
def small() -> Explanation:
    return explain(appendix_e(), np.ones(3))


@pytest.fixture(scope="module")
def sampled() -> Explanation:
    return explain(network("softplus", 12, 1), point(12, 1), budget=200)


ASKED: dict[str, tuple[Callable[[Explanation], Any], str]] = {
    "order > n": (lambda e: e.interactions(4), r"'order' parameter of interactions.*1 to n_features = 3.*Got 4"),
    "order 0": (lambda e: e.interactions(0), r"'order'.*from 1 to.*Got 0"),
    "order not whole": (lambda e: e.interactions(1.5), r"'order'.*whole number.*Got 1\.5"),
    "order true": (lambda e: e.interactions(True), r"'order'.*whole number.*Got True"),
    "max_order > n": (lambda e: e.moebius(4), r"'max_order' parameter of moebius.*n_features = 3.*Got 4"),
    "max_order text": (lambda e: e.moebius("2"), r"'max_order'.*Got '2'"),
    "index": (
        lambda e: e.interactions(2, "SHAP"),
        r"'index'.*'SII', 'STII', 'k-SII', 'FSII', 'BII'.*Got 'SHAP'",
    ),
    "index case": (lambda e: e.interactions(2, "sii"), r"'index'.*'SII'.*Got 'sii'"),
    "index not text": (lambda e: e.interactions(2, 2), r"'index'.*'SII'.*Got 2"),
    "ridge negative": (lambda e: e.lime(ridge=-1.0), r"'ridge' parameter of lime.*number >= 0.*Got -1\.0"),
    "ridge nan": (lambda e: e.lime(ridge=NAN), r"'ridge'.*Got nan"),
    "ridge inf": (lambda e: e.lime(ridge=INF), r"'ridge'.*Got inf"),
    "ridge text": (lambda e: e.lime(ridge="1"), r"'ridge'.*Got '1'"),
    "ridge true": (lambda e: e.lime(ridge=True), r"'ridge'.*Got True"),
    "sigma 0": (lambda e: e.lime(sigma=0), r"'sigma' parameter of lime.*number > 0.*Got 0"),
    "sigma negative": (lambda e: e.lime(sigma=-0.25), r"'sigma'.*Got -0\.25"),
    "sigma inf": (lambda e: e.lime(sigma=INF), r"'sigma'.*Got inf"),
    "sigma none": (lambda e: e.lime(sigma=None), r"'sigma'.*Got None"),
    "sigma complex": (lambda e: e.lime(sigma=np.complex128(1)), r"'sigma'.*Got .*0j"),
    "k_features 0": (lambda e: e.lime(k_features=0), r"'k_features'.*None or a whole number from 1 to 3.*Got 0"),
    "k_features > n": (lambda e: e.lime(k_features=4), r"'k_features'.*1 to 3.*Got 4"),
    "k_features float": (lambda e: e.lime(k_features=2.0), r"'k_features'.*Got 2\.0"),
    "select": (lambda e: e.lime(select="ridge"), r"'select'.*one of 'lasso', 'largest'.*Got 'ridge'"),
    "select not text": (lambda e: e.lime(k_features=1, select=["lasso"]), r"'select'.*Got \['lasso'\]"),
    "coalition too large": (
        lambda e: e.interactions(2)[(0, 1, 2)],
        r"'coalition'.*1 to 2 different.*\(0, 1, 2",
    ),
    "coalition outside": (lambda e: e.moebius(2)[(0, 3)], r"'coalition' parameter of Moebius.*0 \.\. 2.*\(0, 3\)"),
    "coalition twice": (lambda e: e.interactions(2)[(1, 1)], r"'coalition'.*different.*\(1, 1\)"),
    "coalition empty": (lambda e: e.interactions(2)[()], r"'coalition'.*Got \(\)"),
    "coalition negative": (lambda e: e.interactions(2)[-1], r"'coalition'.*Got -1"),
    "coalition none": (lambda e: e.interactions(2)[None], r"'coalition'.*Got None"),
    "coalition nested": (lambda e: e.interactions(2)[([0], [1])], r"'coalition'.*Got \(\[0\], \[1\]\)"),
    "coalition mixed": (lambda e: e.interactions(2)[(0, "a")], r"'coalition'.*Got \(0, 'a'\)"),
    "coalition error": (lambda e: e.interactions(2).error((0, 3)), r"'coalition'.*\(0, 3\)"),
    "level": (lambda e: e.shapley().interval(95), r"'level'.*Got 95"),
    "level of pairs": (lambda e: e.interactions().interval(0.0), r"'level'.*Got 0\.0"),
}


@pytest.mark.parametrize(("ask", "sentence"), ASKED.values(), ids=ASKED.keys())
def test_one_sentence(small: Explanation, ask: Callable[[Explanation], Any], sentence: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(GralisError, match=sentence):
            ask(small)


def test_numbers_of_numpy_are_numbers(small: Explanation) -> None:
    plain, numpy = small.lime(ridge=2, sigma=1.0, k_features=2), small.lime(np.int64(2), np.float32(1), np.int8(2))
    assert numpy.values == pytest.approx(plain.values)
    assert dict(small.interactions(np.int64(2))) == dict(small.interactions(2))


NEEDED = {
    "interactions 3": (lambda e: e.interactions(3), 298),
    "FSII 3": (lambda e: e.interactions(3, "FSII"), 298),
    "moebius 4": (lambda e: e.moebius(4), 793),
}


@pytest.mark.parametrize(("ask", "unknowns"), NEEDED.values(), ids=NEEDED.keys())
def test_too_few_rows_say_how_many(sampled: Explanation, ask: Callable[[Explanation], Any], unknowns: int) -> None:
    """12 + 66 + 220 (+ 495) unknowns; the ledger's different coalitions are counted here."""
    counted = sampled.ledger.masks[sampled.ledger.replicate != -1]
    has = len(np.unique(np.vstack([counted, np.ones((1, 12), bool)]), axis=0))
    with pytest.raises(GralisError, match=rf"has {unknowns} unknowns.*this ledger has {has}\..*larger budget"):
        ask(sampled)


def test_too_many_coalitions_to_list() -> None:
    found = explain(models.blackbox(lambda z: z.sum(1)), np.ones(400), plan="endpoint", budget=2000)
    with pytest.raises(GralisError, match=r"'order'.*at most 200000 coalitions.*3, which has 10667000"):
        found.interactions(3)


def test_lime_and_kernel_shap_need_more_rows_than_features() -> None:
    found = explain(models.blackbox(lambda z: z.sum(1)), np.ones(30), plan="endpoint", budget=130)
    few = found.ledger.take(np.arange(found.ledger.n_rays) % 30 < 6)
    with pytest.raises(GralisError, match=r"kernel_shap has 30 unknowns.*larger budget"):
        replace(found, ledger=few).kernel_shap()
    with pytest.raises(GralisError, match=r"lime has 31 unknowns.*larger budget"):
        replace(found, ledger=few).lime()


def test_taylor_interactions_of_order_3_need_all_coalitions() -> None:
    found = explain(network("softplus", 9, 1), point(9, 1), budget=2000)
    with pytest.raises(GralisError, match=r"STII of order 3.*plan='exhaustive'.*'FSII'"):
        found.interactions(3, "STII")


def test_a_folded_ledger_has_no_coalition_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gralis.run.settings._KEEP_BYTES", 2**10)
    found = explain(network("softplus", 9, 1), point(9, 1), budget=400)
    asked = [
        found.shapley,
        found.banzhaf,
        found.kernel_shap,
        found.lime,
        found.moebius,
        found.interactions,
        found.integrated_gradients,
        found.singles,
    ]
    for method in asked:
        with pytest.raises(GralisError, match="folded"):
            method()


def test_no_rays_no_path() -> None:
    found = explain(models.blackbox(lambda z: z.prod(1)), np.ones(4), plan="endpoint")
    with pytest.raises(GralisError, match=r"need gradients.*plan='exhaustive'"):
        found.integrated_gradients()


def test_a_feature_that_was_never_alone() -> None:
    background = baselines.sample(np.linspace([0.1] * 9, [0.2] * 9, 2))
    found = explain(network("softplus", 9, 1), point(9, 1), baseline=background, budget=100)
    with pytest.raises(GralisError, match=r"no row for feature \d alone.*coalition_values=True"):
        found.singles()


def test_a_single_replicate_has_no_error() -> None:
    found = explain(network("softplus", 6, 1), point(6, 1), plan="permutation", n_nodes=1, budget=12)
    for method in (found.shapley, found.banzhaf, found.interactions):
        with pytest.raises(GralisError, match=r"at least two replicates|larger budget"):
            method()


def test_values_that_are_not_finite_never_reach_an_explainer() -> None:
    def holed(z: torch.Tensor) -> torch.Tensor:
        return torch.where(z.sum(1) == 2, NAN, z.sum(1))

    with pytest.raises(GralisError, match=r"output is nan.*ray of features \["):
        explain(holed, np.ones(4), plan="endpoint")
