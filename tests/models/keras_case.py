"""Run by test_keras.py in a process of its own, because Keras chooses its backend once: keras_case.py BACKEND."""

from __future__ import annotations

import os
import sys
from typing import Any

import numpy as np
import torch
from torch import nn

import gralis


def twins(keras: Any) -> tuple[Any, nn.Module]:
    """The same network twice: convolution, batch norm with running statistics, dropout, dense."""
    theirs = keras.Sequential(
        [
            keras.Input((6, 6, 2)),
            keras.layers.Conv2D(3, 3, activation="tanh"),
            keras.layers.BatchNormalization(epsilon=1e-3),
            keras.layers.Flatten(),
            keras.layers.Dropout(0.5),
            keras.layers.Dense(4),
        ]
    )
    rng = np.random.default_rng(0)
    weights = [rng.normal(size=w.shape).astype(np.float32) * 0.3 for w in theirs.get_weights()]
    weights[5] = np.abs(weights[5]) + 0.5  # a variance
    theirs.set_weights(weights)
    kernel, bias, gamma, beta, mean, variance, dense, offset = map(torch.from_numpy, weights)
    convolution, norm, linear = nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3, eps=1e-3), nn.Linear(48, 4)
    with torch.no_grad():
        convolution.weight.copy_(kernel.permute(3, 2, 0, 1))
        convolution.bias.copy_(bias)
        norm.weight.copy_(gamma)
        norm.bias.copy_(beta)
        norm.running_mean.copy_(mean)
        norm.running_var.copy_(variance)
        linear.weight.copy_(dense.reshape(4, 4, 3, 4).permute(3, 2, 0, 1).reshape(4, 48))  # (h, w, c) to (c, h, w)
        linear.bias.copy_(offset)
    return theirs, nn.Sequential(convolution, nn.Tanh(), norm, nn.Flatten(), linear).eval()


def the_same_network(keras: Any) -> None:
    theirs, ours = twins(keras)
    before = theirs.get_weights()
    x = np.random.default_rng(1).random((6, 6, 2)).astype(np.float32)
    moved = torch.from_numpy(x).permute(2, 0, 1).contiguous()
    labels = np.arange(36).reshape(6, 6) // 9
    last, first = (gralis.features.groups(labels, shape=shape) for shape in ((6, 6, 2), (2, 6, 6)))
    options: dict[str, Any] = {"budget": 200, "batch_size": 32}
    for target, same in (
        (gralis.targets.margin(2), gralis.targets.margin(2)),
        (lambda z: keras.ops.log_softmax(z)[:, 3], lambda z: z.log_softmax(1)[:, 3]),
        ("all", "all"),
    ):
        expected = gralis.explain(ours, moved, features=first, target=same, **options)
        found = gralis.explain(gralis.models.keras(theirs), x, features=last, target=target, **options)
        np.testing.assert_allclose(found.values, expected.values, rtol=0, atol=1e-6)
    for a, b in zip(before, theirs.get_weights(), strict=True):
        assert np.array_equal(a, b)


def several_inputs(keras: Any) -> None:
    left, right = keras.Input((2,), name="left"), keras.Input((1,), name="right")
    product = keras.Model({"left": left, "right": right}, keras.layers.Multiply()([left, right]))
    points = {"left": torch.tensor([[2.0, 3.0]]), "right": torch.tensor([[5.0]])}
    value, gradient = gralis.models.keras(product, 1).value_and_gradient(points)
    assert value.tolist() == [15.0]
    assert {key: part.tolist() for key, part in gradient.items()} == {"left": [[0.0, 5.0]], "right": [[3.0]]}


def a_function_of_tensorflow() -> None:
    import tensorflow as tf

    detector = tf.function(lambda z: {"label": tf.argmax(z, 1), "score": z**2})
    model = gralis.models.keras(detector, lambda found: found["score"][:, 0])
    values, slopes = model.value_and_gradient(torch.tensor([[3.0, 1.0]], dtype=torch.float64))
    assert (values.tolist(), slopes.tolist(), slopes.dtype) == ([9.0], [[6.0, 0.0]], torch.float64)


def main(backend: str) -> None:
    os.environ["KERAS_BACKEND"] = backend
    import keras

    the_same_network(keras)
    several_inputs(keras)
    if backend == "tensorflow":
        a_function_of_tensorflow()
    print("same numbers on", backend)


if __name__ == "__main__":
    main(sys.argv[1])
