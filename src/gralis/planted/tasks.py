"""Which network learns which scene, and the trained result with what a method needs to explain it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from gralis.arrays import Array
from gralis.baselines import sample
from gralis.features import Features
from gralis.planted.networks import SentenceNetwork, trained_network, trained_trees
from gralis.planted.scenes import Rule, Scene
from gralis.planted.worlds import PlantedPictures, PlantedSentences, PlantedTable, World

__all__ = ["TASKS", "PlantedTask", "Trained"]

_TESTED = 512
_BACKGROUND = 16


@dataclass(frozen=True)
class PlantedTask:
    """A network, the world in which it sees, and the rule that it learns.

    Parameters
    ----------
    network : {"convnet", "transformer", "mlp", "sentences", "trees"}
        What is trained.
    rule : {"one", "together", "distractor"}
        What decides the class; see `Scene`.
    world : World
        How a scene becomes an input.
    n_examples : int, default=4096
        The number of training examples.
    epochs : int, default=6
        How often the network sees each of them.
    """

    network: str
    rule: Rule
    world: World
    n_examples: int = 4096
    epochs: int = 6

    def scene(self, n: int, seed: int) -> Scene:
        """n random examples."""
        return Scene.draw(self.rule, n, self.world.n_features, seed, self.world.fixed)

    def train(self, seed: int = 0) -> Trained:
        """Train the network. Different seeds give different data and different first weights.

        Parameters
        ----------
        seed : int, default=0
            The seed of the data and of the training.
        """
        scene = self.scene(self.n_examples, 2 * seed)
        x = self.world.draw(scene)
        if self.network == "trees":
            return Trained(self, trained_trees(x, scene.y, seed), seed)
        return Trained(self, trained_network(self.network, x, scene.y, self.epochs, seed), seed)


@dataclass(frozen=True, eq=False)
class Trained:
    """A trained task: the model, its test examples, and what is explained.

    Attributes
    ----------
    task : PlantedTask
        What was learned.
    model : object
        The network; `log_odds` evaluates it.
    seed : int
        The seed of the training; the test examples have another one.
    """

    task: PlantedTask
    model: Any
    seed: int

    @cached_property
    def tested(self) -> Scene:
        """Examples that were not seen in training."""
        return self.task.scene(_TESTED, 2 * self.seed + 1)

    @property
    def features(self) -> Features:
        """What is explained."""
        return self.task.world.features()

    @property
    def baseline(self) -> object:
        """Grey for pictures, rows of the table, and for words the mean of all embedded words."""
        if self.task.network in ("mlp", "trees"):
            return sample(self._inputs(self.task.scene(_BACKGROUND, 2 * self.seed + 2**20)))
        if isinstance(self.model, SentenceNetwork):
            mean = self.model.words.weight.detach().mean(0)
            return mean.expand(self.task.world.n_features, -1).clone()
        return 0.5

    def examples(self, scene: Scene) -> list[object]:
        """The inputs of the model, without a batch axis."""
        return list(self._inputs(scene))

    def log_odds(self, scene: Scene) -> Array:
        """The output of the model for every example."""
        x = self._inputs(scene)
        if self.task.network == "trees":
            return np.asarray(self.model.decision_function(x), dtype=np.float64)
        with torch.no_grad():
            return np.asarray(self.model(torch.as_tensor(x)).double().numpy())

    def _inputs(self, scene: Scene) -> Any:
        drawn: NDArray[np.generic] = self.task.world.draw(scene)
        if isinstance(self.model, SentenceNetwork):
            with torch.no_grad():
                return self.model.embed(torch.as_tensor(drawn))
        return drawn.astype(np.float64) if self.task.network == "trees" else torch.as_tensor(drawn)

    @property
    def accuracy(self) -> float:
        """The share of test examples with their marks that the model gets right."""
        shown = self.tested.take(np.flatnonzero(self.tested.shown))
        return float(((self.log_odds(shown) > 0) == shown.y).mean())

    @property
    def reliance(self) -> float:
        """The mean change of F by the distractor over that by the evidence; NaN without a distractor.

        This is the check by intervention. The distractor is turned into its other kind, and it is taken away; the
        larger of the two mean changes is divided by the mean change when the evidence is turned into its other kind.
        Near 0, the model does not use the distractor, whatever its correlation with the class.
        """
        if self.task.rule != "distractor":
            return float("nan")
        scene = self.tested.take(self.tested.telling)
        now = self.log_odds(scene)
        changes = [
            np.abs(self.log_odds(other) - now).mean()
            for other in (scene.with_other_distractor(), scene.without_distractor(), scene.with_other_evidence())
        ]
        return float(max(changes[:2]) / changes[2])


_PICTURES = {"shape": PlantedPictures("shape"), "colour": PlantedPictures("colour")}
_TABLE, _SENTENCES = PlantedTable(), PlantedSentences()

#: The tasks by name: the network, and what decides.
TASKS: dict[str, PlantedTask] = {
    "convnet shape": PlantedTask("convnet", "one", _PICTURES["shape"], epochs=8),
    "convnet texture": PlantedTask("convnet", "one", PlantedPictures("texture")),
    "convnet together": PlantedTask("convnet", "together", _PICTURES["shape"], epochs=10),
    "convnet distractor": PlantedTask("convnet", "distractor", _PICTURES["colour"]),
    "transformer colour": PlantedTask("transformer", "one", _PICTURES["colour"], epochs=8),
    "transformer together": PlantedTask("transformer", "together", _PICTURES["colour"], epochs=10),
    "transformer distractor": PlantedTask("transformer", "distractor", _PICTURES["colour"], epochs=8),
    "mlp column": PlantedTask("mlp", "one", _TABLE),
    "mlp together": PlantedTask("mlp", "together", _TABLE),
    "mlp distractor": PlantedTask("mlp", "distractor", _TABLE),
    "trees column": PlantedTask("trees", "one", _TABLE),
    "trees together": PlantedTask("trees", "together", _TABLE),
    "trees distractor": PlantedTask("trees", "distractor", _TABLE),
    "sentences word": PlantedTask("sentences", "one", _SENTENCES),
    "sentences together": PlantedTask("sentences", "together", _SENTENCES, epochs=10),
    "sentences distractor": PlantedTask("sentences", "distractor", _SENTENCES),
}
