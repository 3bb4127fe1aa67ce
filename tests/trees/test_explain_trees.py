"""`explain` on tree ensembles: what it recognises, what the result can do, and what it says where it cannot."""

from __future__ import annotations

import json

import lightgbm
import numpy as np
import pytest
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier, RandomForestRegressor

import gralis
import slow_trees
from credit_table import credit, score, three_classes, two_classes
from gralis import Gaussian, GralisError, Uniform


@pytest.fixture(scope="module")
def table():
    return credit(300)


@pytest.fixture(scope="module")
def model(table):
    return lightgbm.LGBMClassifier(n_estimators=12, verbose=-1, min_child_samples=5).fit(table, two_classes(table))


@pytest.fixture(scope="module")
def explanation(model, table):
    return gralis.explain(model, table.iloc[[7]], baseline=table[:20])


def test_the_result_is_exact_and_says_how(explanation, model, table):
    assert explanation.plan["name"] == "trees"
    assert explanation.exact
    assert not explanation.stderr.any()
    assert explanation.doubts == ()
    assert list(explanation.names) == list(table.columns)
    margins = model.predict(table, raw_score=True)
    assert explanation.f_x == margins[7]
    np.testing.assert_array_equal(explanation.f_baselines, margins[:20])
    assert "no call of the model" in repr(explanation)
    assert explanation.features.discrete.tolist() == [False, False, False, False, True, True]


def test_values_are_those_of_the_definition(table):
    """A forest small enough to enumerate, through the door that users take, with missing values and categories."""
    model = lightgbm.LGBMRegressor(n_estimators=3, num_leaves=6, verbose=-1, min_child_samples=5)
    model.fit(table, score(table))
    explanation = gralis.explain(model, table.iloc[5], baseline=table[:3], kernel=Gaussian(0.6))
    ledger = explanation.ledger
    truth = slow_trees.phi(ledger.trees, ledger.x, ledger.baselines, ledger.weights, Gaussian(0.6))
    np.testing.assert_allclose(explanation.values, truth, atol=1e-12)


def test_shapley_values_add_up_and_the_residual_splits(explanation):
    assert explanation.shapley().exact
    np.testing.assert_allclose(explanation.shapley().values.sum(), explanation.delta, atol=1e-12)
    parts = explanation.residual
    assert abs(parts.numerical.value) < 1e-12
    np.testing.assert_allclose(parts.observed.value, explanation.delta - explanation.values.sum(), atol=1e-12)
    np.testing.assert_allclose(
        parts.path.value + parts.numerical.value + parts.kernel.value, parts.observed.value, atol=1e-12
    )
    uniform = explanation.with_kernel(Uniform()).values.sum()
    np.testing.assert_allclose(parts.path.value, explanation.delta - uniform, atol=1e-12)


def test_the_ends_of_the_kernels(explanation):
    """A narrow kernel leaves the singles, integrated gradients add up, and a wide kernel is uniform."""
    narrow = explanation.with_kernel(Gaussian(1e-3, "euclidean"))
    baselines, x = explanation.ledger.baselines, explanation.ledger.x
    trees = explanation.ledger.trees
    for i in range(explanation.n_features):
        rows = baselines.copy()
        rows[:, i] = x[i]
        alone = (trees.outputs(rows) - trees.outputs(baselines)).mean()
        np.testing.assert_allclose(explanation.singles().values[i], alone, atol=1e-12)
    assert narrow.exact
    np.testing.assert_allclose(explanation.integrated_gradients().values.sum(), explanation.delta, atol=1e-12)
    wide = explanation.sweep([1e6, np.inf])
    np.testing.assert_allclose(wide.values[0], wide.values[1], atol=1e-9)


def test_everything_a_result_can_do(explanation, tmp_path):
    assert explanation.interactions(order=2, index="SII").exact
    assert explanation.banzhaf().exact
    assert explanation.moebius(2).exact
    assert not explanation.certificate().half_widths.max() > 1e-12
    assert "by the closed-form sum over all coalitions" in repr(explanation.certificate())
    assert explanation.audit(explanation.shapley().values).deficit.any()
    assert [row.split()[-1] for row in repr(explanation.ranks()).splitlines()[2:]] == list("123456")
    assert json.loads(explanation.to_json())["plan"]["name"] == "trees"
    loaded = gralis.load(explanation.save(tmp_path / "trees.gralis"))
    assert repr(loaded) == repr(explanation)
    np.testing.assert_array_equal(loaded.with_kernel(Uniform()).values, explanation.with_kernel(Uniform()).values)
    np.testing.assert_array_equal(loaded.shapley().values, explanation.shapley().values)
    page = explanation.report(tmp_path / "trees.html")
    assert gralis.load(page).values.tolist() == explanation.values.tolist()
    explanation.plot("bars")


@pytest.mark.parametrize(
    ("ask", "sentence"),
    [
        (lambda e: e.extend(100), "already exact"),
        (lambda e: e.as_it_grew(), "as_it_grew needs"),
        (lambda e: e.with_nodes(3), "keeps none"),
        (lambda e: e.baseline_spread(), "summed up in closed form"),
        (lambda e: e.effective_rays, "summed up in closed form"),
        (lambda e: e.with_kernel(lambda masks: np.ones(len(masks))), "neither a product over features"),
    ],
)
def test_what_trees_cannot_do_is_said_in_a_sentence(explanation, ask, sentence):
    with pytest.raises(GralisError, match=sentence.replace("(", r"\(").replace(")", r"\)")):
        ask(explanation)


def test_every_class(table):
    numbers = credit(300, categories=False, missing=False)
    several = GradientBoostingClassifier(n_estimators=3).fit(numbers, three_classes(numbers))
    each = gralis.explain(several, numbers.iloc[1], baseline=numbers[:5], target="all")
    assert len(each) == 3
    margins = several.decision_function(numbers)
    for k in range(3):
        one = gralis.explain(several, numbers.iloc[1], baseline=numbers[:5], target=k)
        np.testing.assert_allclose(one.values, each[k].values, atol=1e-13)
        assert one.f_x == margins[1, k]
    predicted = gralis.explain(several, numbers.iloc[1], baseline=numbers[:5], target="predicted")
    assert predicted.f_x == margins[1].max()
    two = GradientBoostingClassifier(n_estimators=3).fit(numbers, np.where(two_classes(numbers), "yes", "no"))
    yes, no = (gralis.explain(two, numbers.iloc[1], baseline=numbers[:5], target=name) for name in ("yes", "no"))
    np.testing.assert_array_equal(yes.values, -no.values)
    np.testing.assert_array_equal(gralis.explain(two, numbers.iloc[1], baseline=numbers[:5]).values, yes.values)
    forest = RandomForestClassifier(5).fit(numbers, two_classes(numbers))
    assert gralis.explain(forest, numbers.iloc[1], baseline=numbers[:5]).f_x == forest.predict_proba(numbers)[1, 1]


def test_rows_and_backgrounds_of_every_form(model, table, explanation):
    row = table.iloc[7]
    for x in (row, row.to_dict(), table.iloc[[7]]):
        for background in (table[:20], gralis.baselines.sample(table[:20])):
            np.testing.assert_array_equal(gralis.explain(model, x, baseline=background).values, explanation.values)
    codes = explanation.ledger.trees.encode(table)
    by_codes = gralis.explain(model, codes[7], baseline=codes[:20])
    np.testing.assert_array_equal(by_codes.values, explanation.values)
    one = gralis.explain(model, row, baseline=table.iloc[3])
    np.testing.assert_array_equal(one.values, gralis.explain(model, row, baseline=table.iloc[[3]]).values)


def test_groups_of_columns_are_features(model, table):
    groups = gralis.features.columns(list(table.columns), groups={"person": ["age", "job"]})
    explanation = gralis.explain(model, table.iloc[7], baseline=table[:3], features=groups)
    assert explanation.names == ("income", "person", "debt", "owner", "town")
    ledger = explanation.ledger
    truth = slow_trees.phi(ledger.trees, ledger.x, ledger.baselines, ledger.weights, Gaussian(0.75))
    np.testing.assert_allclose(explanation.values, truth, atol=1e-12)


def test_progress_counts_trees(table):
    numbers = credit(100, categories=False, missing=False)
    forest = RandomForestRegressor(7).fit(numbers, score(numbers))
    seen = []
    gralis.explain(
        forest, numbers.iloc[0], baseline=numbers[:3], progress=lambda done, total: seen.append((done, total))
    )
    assert seen[-1] == (7, 7)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"target": "maybe"}, "one of the classes '0', '1'"),
        ({"target": 2}, "a class from 0 to 1"),
        ({"x": {"income": 1.0}}, "'x' parameter.*the 6 columns.*Got columns without age, debt"),
        ({"x": np.zeros(3)}, "'x' parameter.*the 6 columns.*Got 3 columns"),
        ({"x": "frame"}, "one row of a table"),
        ({"baseline": np.zeros((2, 3))}, "'baseline' parameter.*the 6 columns.*Got 3 columns"),
        ({"baseline": np.zeros((0, 6))}, "at least one row"),
        ({"baseline": "renamed"}, "'baseline' parameter.*the 6 columns.*without age and with years"),
        ({"baseline": "itself"}, "x equals the baseline everywhere"),
        ({"layer": "fc"}, "a tree ensemble has no layers"),
        ({"kernel": []}, "a list of at least one"),
        ({"budget": 0}, "a whole number >= 1"),
    ],
)
def test_bad_input(model, table, options, sentence):
    forms = {"frame": table[:2], "renamed": table.rename(columns={"age": "years"}), "itself": table.iloc[[7]]}
    options = {name: forms.get(value, value) if isinstance(value, str) else value for name, value in options.items()}
    x = options.pop("x", table.iloc[7])
    with pytest.raises(GralisError, match="(?i)" + sentence):
        gralis.explain(model, x, **{"baseline": table[:5], **options})


def test_a_batch_of_rows_knows_each_row(model, table):
    together = gralis.explain_batch(model, table[5:9], baseline=table[:10])
    for place, explanation in enumerate(together):
        alone = gralis.explain(model, table.iloc[5 + place], baseline=table[:10])
        assert repr(explanation).split("\n")[:9] == repr(alone).split("\n")[:9]
        np.testing.assert_allclose(explanation.values, alone.values, atol=1e-13)
        np.testing.assert_allclose(explanation.shapley().values, alone.shapley().values, atol=1e-13)
        np.testing.assert_array_equal(explanation.endpoints.x[0], alone.endpoints.x[0])
        assert explanation.provenance["hashes"] == alone.provenance["hashes"]


def test_the_cost_of_trees_has_no_call_of_the_model(model, table):
    estimate = gralis.cost(model, table.iloc[7], baseline=table[:20])
    assert (estimate.n_rays, estimate.n_gradients, estimate.n_forwards) == (0, 0, 0)
    assert 0 < estimate.seconds < np.inf
    assert estimate.bytes > 1000
