"""The shares of a checksum against noise whose covariance is known."""

import numpy as np
import pytest

from gralis.estimators.checksum_shares import checksum_shares
from gralis.laws import all_masks


def noise_of(covariance, masks, rows_per_ray, rng, sizes=1.0):
    """Rows of normal noise of the members of every ray, times the size of the ray."""
    ray = np.repeat(np.arange(len(masks)), rows_per_ray)
    noise = rng.multivariate_normal(np.zeros(len(covariance)), covariance, len(ray))
    return noise * masks[ray] * np.broadcast_to(sizes, len(masks))[ray, None], ray


def by_definition(covariance, masks):
    """C_TT 1 / (1^T C_TT 1), coalition by coalition."""
    shares = np.zeros(masks.shape)
    for row, mask in zip(shares, masks, strict=True):
        inside = covariance[np.ix_(mask, mask)]
        row[mask] = inside.sum(1) / inside.sum()
    return shares


@pytest.mark.parametrize("sizes", [1.0, None], ids=["equal rays", "rays of very different sizes"])
def test_shares_follow_the_covariance(sizes):
    rng = np.random.default_rng(0)
    masks = all_masks(4)[all_masks(4).sum(1) > 1]
    root = np.array([[1.0, 0.2, 0.0, 0.0], [0.0, 0.5, 0.0, 0.3], [0.0, 0.0, 2.0, 0.0], [0.1, 0.0, 0.0, 0.7]])
    sizes = np.exp(3 * rng.normal(size=len(masks))) if sizes is None else sizes
    noise, ray = noise_of(root.T @ root, masks, 4000, rng, sizes)
    found = checksum_shares(masks, noise, ray).shares
    np.testing.assert_allclose(found, by_definition(root.T @ root, masks), atol=0.04)
    np.testing.assert_allclose(found.sum(1), 1.0, atol=1e-12)


def test_noise_along_one_direction_is_divided_exactly():
    rng = np.random.default_rng(1)
    weights, masks = np.array([0.3, -0.2, 1.5, 0.7, 2.0]), all_masks(5)
    ray = np.repeat(np.arange(len(masks)), 3)
    noise = rng.normal(size=(len(ray), 1)) * weights * masks[ray]
    found = checksum_shares(masks, noise, ray)
    expected = masks * weights / (masks @ weights)[:, None]
    clear = np.abs(masks @ weights) > 0.5 * (masks @ np.abs(weights))  # where the noise of the members does not cancel
    assert clear.sum() > 20
    np.testing.assert_allclose(found.shares[clear], expected[clear], atol=1e-12)


def test_the_error_of_shares_is_that_of_independent_noise():
    """Two independent noises of the same size: noise_1 - c / 2 has half the variance of c's quarter, that is 1/4."""
    masks = np.ones((200, 2), dtype=bool)
    noise, ray = noise_of(np.eye(2), masks, 50, np.random.default_rng(2))
    np.testing.assert_allclose(checksum_shares(masks, noise, ray).variance, 0.25, rtol=0.05)


def test_a_share_is_learnt_from_other_rays():
    """A share that is learnt from its own noise would follow it: the mean of noise - share c would not be zero."""
    masks, rest = np.ones((3, 2), dtype=bool), []
    for seed in range(4000):
        # The noise of one feature is skewed, so that a share that looks at its own ray shows as a bias.
        rng = np.random.default_rng(seed)
        noise = np.stack([rng.exponential(size=3) - 1, rng.normal(size=3)], axis=1)
        found = checksum_shares(masks, noise, np.arange(3))
        rest.append((noise - found.shares * noise.sum(1, keepdims=True)).mean(0))
    rest = np.array(rest)
    assert (np.abs(rest.mean(0)) < 4 * rest.std(0) / np.sqrt(len(rest))).all()


def test_noise_that_cancels_is_divided_by_size():
    """a and -a: the checksum shows nothing of the noise, and its division by a sum near zero would blow up."""
    masks = np.ones((6, 2), dtype=bool)
    noise = np.random.default_rng(3).normal(size=(60, 1)) * np.array([1.0, -1.0])
    found = checksum_shares(masks, noise, np.repeat(np.arange(6), 10))
    np.testing.assert_allclose(found.shares, 0.5, atol=1e-12)


def test_rays_without_noise_have_shares_too_and_no_noise_has_none():
    masks = np.array([[True, True], [True, True], [True, True]])
    noise = np.array([[1.0, 3.0], [-2.0, -6.0], [0.0, 0.0]])
    np.testing.assert_allclose(checksum_shares(masks, noise, np.arange(3)).shares, [[0.25, 0.75]] * 3)
    assert not checksum_shares(masks, np.zeros((3, 2)), np.arange(3)).shares.any()
