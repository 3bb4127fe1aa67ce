"""Scores against models whose answer is known, the records of a run, and the command."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from gralis import GralisError
from gralis.planted import METHODS, TASKS, Trained, run, score_task
from gralis.planted.scoring import _Answer, _false_alarm
from gralis.planted.tasks import PlantedTask
from gralis.planted.worlds import PlantedTable

TABLE = PlantedTable(n_features=6)


class AtZero(Trained):
    """One baseline instead of a background, so that a linear model has an answer that is easy to see."""

    baseline = 0.0


def scores(rule, model, **options):
    trained = AtZero(PlantedTask("mlp", rule, TABLE), model, seed=0)
    found = score_task("known", trained, **{"n_examples": 2, "budget": 300, "n_references": 0, **options})
    return {score.method: score for score in found}


def test_a_model_of_the_evidence_alone_is_found_and_one_of_the_distractor_is_not():
    honest = scores("distractor", lambda z: 3 * z[:, 0])  # the mark stands in column 0, the distractor in column 1
    misled = scores("distractor", lambda z: 3 * z[:, 1])
    for method in ("gralis", "gralis_uniform", "integrated_gradients", "occlusion", "shapley", "kernel_shap"):
        assert honest[method].evidence_first == 1
        assert honest[method].distractor_first == 0
        assert honest[method].distractor_ratio < 1e-3
        assert misled[method].evidence_first == 0
        assert misled[method].distractor_first == 1


def test_the_pair_that_counts_together_is_found_as_a_pair():
    both = scores("together", lambda z: 4 * (9 * z[:, 0]).sigmoid() * (9 * z[:, 1]).sigmoid())
    assert both["pairs (SII)"].evidence_first == 1
    apart = scores("together", lambda z: z[:, 0] + z[:, 1] + 3 * z[:, 4] * z[:, 5])
    assert apart["pairs (SII)"].evidence_first == 0


def test_a_method_that_cannot_explain_the_model_leaves_its_sentence():
    found = scores("one", lambda z: z[:, 0])["gradcam"]
    assert found.n == 0
    assert math.isnan(found.evidence_first)
    assert "must be a torch.nn.Module" in found.problem


@pytest.mark.parametrize(
    ("mine", "reference", "false"),
    [
        ((1, 2), (-0.1, 0.1), True),  # claims a sign where the reference has none
        ((1, 2), (-2, -1), True),  # the other sign
        ((1, 2), (3, 4), False),  # misses the reference, but the sign is right
        ((-1, 2), (-4, -3), False),  # claims no sign
        ((0.05, 2), (-0.1, 0.1), False),  # the intervals overlap
    ],
)
def test_false_alarms(mine, reference, false):
    nothing = np.zeros(1, dtype=bool)
    answers = [
        _Answer(np.array([sum(ends) / 2]), nothing, nothing, np.array([ends[0]]), np.array([ends[1]]), 0.0)
        for ends in (mine, reference)
    ]
    assert _false_alarm(*answers) is false


def test_a_run_trains_scores_and_continues(tmp_path, monkeypatch):
    options = {"n_examples": 2, "budget": 200, "n_references": 1}
    first = run(tmp_path, ["mlp column"], **options)
    assert [score.method for score in first] == list(METHODS)
    by_name = {score.method: score for score in first}
    assert by_name["gralis_uniform"].evidence_first == 1
    record = json.loads((tmp_path / "mlp-column.json").read_text())
    assert record["accuracy"] > 0.98
    monkeypatch.setattr(PlantedTask, "train", lambda *_: pytest.fail("a finished task is read, not made again"))
    again = run(tmp_path, ["mlp column"], **options)
    assert [s.settings()["evidence_first"] for s in again[:2]] == [s.evidence_first for s in first[:2]]
    assert "## The evidence is ranked first" in (tmp_path / "planted.md").read_text()
    with pytest.raises(GralisError, match="other settings"):
        run(tmp_path, ["mlp column"], **{**options, "budget": 121})
    with pytest.raises(GralisError, match=r"'tasks' parameter of planted\.run must be made of convnet shape"):
        run(tmp_path, ["horses"])


def test_the_intervention_tells_whether_a_model_uses_the_distractor():
    honest = Trained(TASKS["mlp distractor"], lambda z: z[:, 0], 0)
    both = Trained(TASKS["mlp distractor"], lambda z: z[:, 0] + z[:, 1], 0)
    assert honest.reliance == 0
    assert 0.8 < both.reliance < 1.2


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(TASKS))
def test_every_network_learns_what_decides_and_ignores_the_distractor(name):
    trained = TASKS[name].train(1)
    assert trained.accuracy > 0.97
    assert not trained.reliance > 0.1
