"""Scenes and worlds: the class follows from the marks alone, and a mark changes its own feature alone."""

from __future__ import annotations

import numpy as np
import pytest

from gralis.planted.scenes import Scene
from gralis.planted.worlds import PlantedPictures, PlantedSentences, PlantedTable

WORLDS = [PlantedPictures("shape"), PlantedPictures("colour"), PlantedPictures("texture")]
WORLDS += [PlantedTable(), PlantedSentences()]


def of_feature(world, x, feature):
    """The part of one input that belongs to a feature."""
    labels = world.features().labels[0]
    return np.asarray(x)[np.broadcast_to(labels == feature, np.shape(x))]


@pytest.mark.parametrize("rule", ["one", "distractor"])
def test_the_class_is_the_kind_of_the_mark_and_random_without_one(rule):
    scene = Scene.draw(rule, 4000, 16, seed=3)
    assert (scene.y[scene.shown] == scene.kinds[scene.shown, 0]).all()
    blank = scene.y[~scene.shown]
    assert 400 < len(blank) < 800
    assert abs((blank == scene.kinds[~scene.shown, 0]).mean() - 0.5) < 0.1


def test_marks_count_only_together():
    scene = Scene.draw("together", 2000, 16, seed=3)
    assert (scene.y == scene.kinds.prod(1)).all()
    assert 0.4 < scene.y.mean() < 0.6
    assert (scene.places[:, 0] != scene.places[:, 1]).all()


def test_the_distractor_agrees_with_the_class_in_four_of_five_and_never_covers_the_mark():
    scene = Scene.draw("distractor", 8000, 16, seed=1)
    there = scene.distractor_place >= 0
    assert abs(there.mean() - 2 / 3) < 0.03
    assert abs((scene.distractor_kind == scene.y).mean() - 0.8) < 0.02
    assert not (scene.evidence & scene.distractor).any()
    assert (scene.distractor.sum(1) == there).all()


@pytest.mark.parametrize("world", WORLDS, ids=repr)
def test_turning_the_mark_changes_its_feature_and_no_other(world):
    scene = Scene.draw("distractor", 20, world.n_features, 5, world.fixed)
    scene = scene.take(scene.telling)
    for other, marked in (
        (scene.with_other_evidence(), scene.evidence),
        (scene.with_other_distractor(), scene.distractor),
    ):
        for x, turned, own in zip(world.draw(scene), world.draw(other), marked, strict=True):
            changed = [
                not np.array_equal(of_feature(world, x, i), of_feature(world, turned, i))
                for i in range(world.n_features)
            ]
            assert changed == own.tolist()


@pytest.mark.parametrize("world", WORLDS, ids=repr)
def test_the_same_seed_draws_the_same_inputs(world):
    first, second, other = (world.draw(Scene.draw("one", 6, world.n_features, seed)) for seed in (7, 7, 8))
    assert np.array_equal(first, second)
    assert not np.array_equal(first, other)
