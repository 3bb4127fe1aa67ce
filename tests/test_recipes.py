"""Recipes: baselines made from x itself."""

from __future__ import annotations

import pickle

import numpy as np
import torch
from scipy.ndimage import gaussian_filter

from gralis.baselines import blur, mean, mean_color, noise, resolve, zeros

rng = np.random.default_rng(7)
CHW = rng.normal(size=(3, 20, 30))


def only(baseline, x) -> np.ndarray:
    """The single point on the single leaf, without the row axis."""
    baselines = resolve(baseline, (x,))
    assert baselines.n_baselines == 1
    assert baselines.weights.tolist() == [1.0]
    return baselines.points[0][0].numpy()


def test_names_are_the_builders():
    for name, recipe in {"zeros": zeros, "mean": mean, "mean-color": mean_color, "blur": blur, "noise": noise}.items():
        assert np.array_equal(only(name, CHW), only(recipe(), CHW))
        assert resolve(name, (CHW,)).name == name
    assert [repr(r) for r in (zeros(), mean_color(), blur(), blur(8), noise(3), mean_color(2))] == [
        "zeros()",
        "mean_color()",
        "blur()",
        "blur(sigma=8)",
        "noise(seed=3)",
        "mean_color(channel_axis=2)",
    ]
    assert blur(8) == blur(8) != blur(9)
    assert pickle.loads(pickle.dumps(blur(8))) == blur(8)


def test_mean_and_mean_color_are_means():
    assert np.allclose(only("mean", CHW), CHW.mean())
    colors = only("mean-color", CHW)
    assert colors.shape == CHW.shape
    for channel in range(3):
        assert np.allclose(colors[channel], CHW[channel].mean())
    hwc = np.moveaxis(CHW, 0, -1)
    assert np.allclose(only("mean-color", hwc), np.moveaxis(colors, 0, -1))
    tiny = rng.normal(size=(1, 5, 4))  # both ends look like colours: channels first again
    assert np.allclose(only("mean-color", tiny), tiny.mean())
    maps = rng.normal(size=(16, 5, 5))  # neither end looks like colours: channels first, as torch has it
    assert np.allclose(only("mean-color", maps)[7], maps[7].mean())
    assert np.allclose(only(mean_color(channel_axis=None), CHW), CHW.mean())
    assert np.allclose(only(mean_color(channel_axis=1), CHW)[:, 4], CHW[:, 4].mean())
    assert np.allclose(only("mean-color", CHW[0]), CHW[0].mean())


def test_blur_smooths_space_and_not_channels():
    soft = only(blur(sigma=1.5), CHW)
    for channel in range(3):
        assert np.allclose(soft[channel], gaussian_filter(CHW[channel], 1.5))
    assert np.allclose(only("blur", CHW), only(blur(sigma=2.0), CHW))  # a tenth of the shorter side, 20
    assert np.allclose(only("blur", np.moveaxis(CHW, 0, -1)), np.moveaxis(only("blur", CHW), 0, -1))
    assert np.allclose(soft.mean(axis=(1, 2)), CHW.mean(axis=(1, 2)))


def test_noise_is_seeded_bounded_and_local():
    state, torch_state = np.random.get_state()[1].copy(), torch.get_rng_state()  # noqa: NPY002
    x = CHW * np.array([1.0, 10.0, 100.0]).reshape(3, 1, 1)
    first = only(noise(seed=0), x)
    assert np.array_equal(first, only("noise", x))
    assert not np.array_equal(first, only(noise(seed=1), x))
    for channel in range(3):
        low, high = x[channel].min(), x[channel].max()
        assert low <= first[channel].min()
        assert first[channel].max() <= high
        assert np.ptp(first[channel]) > 0.9 * (high - low)
        assert abs(first[channel].mean() - (low + high) / 2) < 0.1 * (high - low)
    two = resolve("noise", (x, x)).points
    assert not torch.equal(*two)
    assert np.array_equal(state, np.random.get_state()[1])  # noqa: NPY002
    assert torch.equal(torch_state, torch.get_rng_state())
