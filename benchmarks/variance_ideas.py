"""What would lower the error of the default plan on real networks: every idea at equal cost, on recorded rays.

python benchmarks/variance_ideas.py FOLDER [--quick] [--out benchmarks/results/variance_ideas.json]

FOLDER holds the rays that `variance_pool.py` recorded. The nodes of a recorded ray stand for the whole ray, so that the
variance of every way to draw from them is a sum and needs no simulation. A forward costs a third of a gradient, and
coefficients are fitted to all other rays. A number is the RMSE of an idea divided by that of the default plan. A line
that begins with "floor" uses something that no run knows, so it shows how much ideas of its kind could gain on these
rays.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from report import geometric_mean, options, table, write
from variance_densities import by_steps, learnt_density
from variance_pool import Pool, load

from gralis.estimators.checksum_shares import checksum_shares
from gralis.plans.node_density import PILOT_DENSITY

Array = NDArray[np.float64]
#: Takes the noise of the nodes and their chances in their cells. Returns columns of mean zero that are regressed on.
Controls = Callable[[Array, Array], list[Array]]

FORWARD = 1 / 3  # of the cost of a gradient
RIDGE = 1e-3
PENALTIES = (0.01, 0.1, 1.0, 10.0)  # of the surrogate of slopes; the best is taken, in its favour
N_FOLDS = 5  # of the surrogate
N_PILOTS = 6  # the variances are averaged over the densities that they teach
TINY = 1e-300


class Study:
    """The rays of one prediction, with the node density that one pilot teaches.

    A way to draw nodes is a table of masses, (n_rays, n_cells, n_nodes): how much of the probability of a ray lies on
    each node in each cell. One node is drawn in every cell, in proportion to its mass. Noise has features last.
    """

    def __init__(self, pool: Pool, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.pool, self.masks, self.trust = pool, pool.masks, pool.importance**2
        self.n_rays, self.n_nodes, self.n_features = pool.rows.shape
        self.rows = pool.rows * pool.masks[:, None]
        self.n_pilot = int(np.clip(pool.budget // 10, 24, 96))
        self.density = learnt_density(pool, rng, self.n_pilot)
        self.chance = _normal(pool.weights * self.density(pool.nodes))
        self.fold = rng.permutation(self.n_rays) % N_FOLDS

    def rays_at_cost(self, n_nodes: float = 1, forwards: float = 1) -> float:
        """How many rays cost what those of the default plan cost, beside the pilot and the census."""
        return (self.pool.budget - self.n_pilot) * (1 + FORWARD) / (n_nodes + FORWARD * forwards)

    def coalition_part(self) -> float:
        """The variance of W (ray - constant) between coalitions, summed over the features."""
        rays = (self.pool.weights[..., None] * self.rows).sum(1)
        constant = (self.trust * rays).sum(0) / self.trust.sum(0)
        return float((self.pool.importance * (rays - constant * self.masks)).var(0, ddof=1).sum())

    def cells(self, n_cells: int = 1, chance: Array | None = None) -> Array:
        """The masses of n_cells equally probable cells."""
        chance = self.chance if chance is None else chance
        end = np.cumsum(chance, axis=1)[:, None]
        edges = np.arange(n_cells + 1)[:, None] / n_cells
        reach = np.minimum(end, edges[1:]) - np.maximum(end - chance[:, None], edges[:-1])
        return np.asarray(np.maximum(reach, 0.0))

    def noise(self, mass: Array, rows: Array | None = None) -> tuple[Array, Array]:
        """What each node of each cell adds to the ray, less the mean of the cell, and the chance of the node there."""
        of_cell = mass.sum(2, keepdims=True)
        inside = mass / np.maximum(of_cell, TINY)
        weight = (self.pool.weights / mass.sum(1))[:, None] * of_cell  # (n_rays, n_cells, n_nodes)
        added = weight[..., None] * (self.rows if rows is None else rows)[:, None]
        return added - (inside[..., None] * added).sum(2, keepdims=True), inside

    def node_part(self, mass: Array, controls: Controls, rows: Array | None = None) -> float:
        """The mean of W^2 times the variance of the nodes that the controls leave, summed over the features."""
        noise, inside = self.noise(mass, rows)
        return self.left(noise - self._explained(noise, inside, controls(noise, inside)), inside)

    def left(self, left: Array, inside: Array) -> float:
        """The mean over the rays of W^2 times the variance of what is left, summed over the features."""
        return float((self.trust * (inside[..., None] * left**2).sum((1, 2))).sum() / self.n_rays)

    def _explained(self, noise: Array, inside: Array, controls: list[Array]) -> Array:
        """What coefficients from all other rays explain of each ray."""
        if not controls:
            return np.zeros_like(noise)
        columns = np.stack(np.broadcast_arrays(*controls), axis=-1)
        weighed = inside[..., None, None] * self.trust[:, None, None, :, None] * columns
        normal = _others(np.einsum("rckia,rckib->riab", weighed, columns))
        right = _others(np.einsum("rckia,rcki->ria", weighed, noise))
        n_columns = normal.shape[-1]
        ridge = RIDGE * np.trace(normal, axis1=2, axis2=3) / n_columns + TINY
        beta = np.linalg.solve(normal + ridge[..., None, None] * np.eye(n_columns), right[..., None])[..., 0]
        return np.einsum("rckia,ria->rcki", columns, beta)

    # Controls
    def nothing(self, noise: Array, inside: Array) -> list[Array]:
        return []

    def _by_noise(self, noise: Array, inside: Array) -> Array:
        """Shares in proportion to the noise of the members, (n_rays, 1, 1, n_features)."""
        size = (inside[..., None] * noise**2).sum((0, 1, 2)) / np.maximum(self.masks.sum(0), 1)
        loads = self.masks * np.maximum(size / size.max(), 1e-60)
        return np.asarray((loads / loads.sum(1, keepdims=True))[:, None, None])

    def checksum(self, noise: Array, inside: Array) -> list[Array]:
        """What the default plan does: the checksum of the ray, shared by noise and by size."""
        check = noise.sum(3, keepdims=True)
        equal = (self.masks / self.masks.sum(1, keepdims=True))[:, None, None]
        return [check * self._by_noise(noise, inside), check * equal]

    def covariance(self, noise: Array, inside: Array) -> list[Array]:
        """The same, and shares by the covariance of the noise that all other rays show."""
        rows = (np.sqrt(inside)[..., None] * noise).reshape(-1, self.n_features)
        shares = checksum_shares(self.masks, rows, np.repeat(np.arange(self.n_rays), inside[0].size)).shares
        return [noise.sum(3, keepdims=True) * shares[:, None, None], *self.checksum(noise, inside)]

    def segments(self, noise: Array, inside: Array) -> list[Array]:
        """A checksum for every cell, with shares of its own."""
        cells = np.eye(noise.shape[1])[:, None, :, None, None]
        return [column * cell for column in self.checksum(noise, inside) for cell in cells]

    def by_parts(self, noise: Array, inside: Array) -> list[Array]:
        """The slope of psi (F - F(x')) has the integral psi(1) v(T): two more controls, psi = s and s^2, for free."""
        pool, found = self.pool, self.checksum(noise, inside)
        s, h = self.density.cumulative(pool.nodes), self.density(pool.nodes)
        for power in (1, 2):
            slope = power * s ** (power - 1) * h * pool.moved + s**power * self.rows.sum(2)
            whole = pool.weights / self.chance * slope
            whole = whole - (self.chance * whole).sum(1, keepdims=True)
            found.append(whole[:, None, :, None] * self._by_noise(noise, inside))
        return found

    # Ideas that are not a way to draw with controls
    def own_shares(self, n_cells: int = 1) -> tuple[Array, Array]:
        """What is left of the noise if every ray knew its best shares in the checksum of each of its cells."""
        noise, inside = self.noise(self.cells(n_cells))
        check = noise.sum(3)
        weight = np.maximum((inside * check**2).sum(2), TINY)
        slope = np.einsum("rck,rck,rcki->rci", inside, check, noise) / weight[..., None]
        return noise - slope[:, :, None] * check[..., None], inside

    def mirrored(self) -> float:
        """The node part of the mean of two nodes at mirrored places of the density, u and 1 - u."""
        left = self.default()[:, 0]
        at = (np.arange(512) + 0.5) / 512
        total = 0.0
        for ray in range(self.n_rays):
            node = np.minimum(np.searchsorted(np.cumsum(self.chance[ray]), at), self.n_nodes - 1)
            both = (left[ray, node] + left[ray, node[::-1]]) / 2
            total += float((self.trust[ray] * both.var(0)).sum())
        return total / self.n_rays

    def surrogate(self) -> float:
        """The node part if slopes are predicted by position x (size, members), learnt at all nodes of other rays."""
        place = 2 * self.density.cumulative(self.pool.nodes) - 1
        height = self.density(self.pool.nodes)[..., None]
        about = np.column_stack([np.ones(self.n_rays), self.masks.mean(1) - 0.5, self.masks - 0.5])
        basis = np.polynomial.legendre.legvander(place, 3)[..., None] * about[:, None, None]
        columns = basis.reshape(self.n_rays, self.n_nodes, -1)
        slopes = self.rows / height
        guesses = np.zeros((len(PENALTIES), *slopes.shape))
        for fold, i in np.ndindex(N_FOLDS, self.n_features):
            learn, use = (chosen & self.masks[:, i] for chosen in (self.fold != fold, self.fold == fold))
            inside = columns[learn].reshape(-1, columns.shape[2])
            weighed = inside * (self.trust[learn, i, None] * self.chance[learn]).reshape(-1, 1)
            normal, right = weighed.T @ inside, weighed.T @ slopes[learn][..., i].ravel()
            ridge = (np.trace(normal) / len(normal) + TINY) * np.eye(len(normal))
            for guess, penalty in zip(guesses, PENALTIES, strict=True):
                guess[use, :, i] = columns[use] @ np.linalg.solve(normal + penalty * ridge, right)
        return min(self.node_part(self.cells(), self.checksum, (slopes - guess) * height) for guess in guesses)

    def default(self) -> Array:
        """What the default plan leaves of the noise of one node."""
        noise, inside = self.noise(self.cells())
        return noise - self._explained(noise, inside, self.checksum(noise, inside))

    def moments(self, left: Array) -> tuple[Array, Array]:
        """The second moment of what is left of one node on each ray, and the least that a density gives."""
        size = np.sqrt((self.trust[:, None] * left[:, 0] ** 2).sum(2))
        return (self.chance * size**2).sum(1), (self.chance * size).sum(1) ** 2

    def pilot_counts(self, default: float) -> float:
        """The variance if the rays of the pilot enter the mean too, in the best proportion, times the rays."""
        chance = _normal(self.pool.weights * PILOT_DENSITY(self.pool.nodes))
        pilot = self.coalition_part() + self.node_part(self.cells(1, chance), self.checksum)
        n_rays = self.rays_at_cost()
        return n_rays / (n_rays / default + self.n_pilot / pilot)


def _others(each: Array) -> Array:
    """The sum over all other rays, for every ray."""
    return np.asarray(each.sum(0) - each)


def _normal(chance: Array) -> Array:
    return np.asarray(chance / chance.sum(1, keepdims=True))


def ideas(study: Study) -> dict[str, float]:
    """The mean squared error of every idea at the cost of the default plan, times the features."""
    rays, coalitions = study.rays_at_cost, study.coalition_part()
    one = study.cells()
    default = study.node_part(one, study.checksum)
    each, best = study.moments(study.default())
    found = {"default": (coalitions + default) / rays()}

    def add(name: str, nodes: float, n_nodes: float = 1, forwards: float = 1, between: float = coalitions) -> None:
        found[name] = (between + nodes) / rays(n_nodes, forwards)

    add("no checksum and no values", study.node_part(one, study.nothing), 1, 0)
    add("shares by covariance", study.node_part(one, study.covariance))
    add("controls by parts", study.node_part(one, study.by_parts))
    add("surrogate of slopes, all nodes known", study.surrogate())
    add("two mirrored nodes", study.mirrored(), 2)
    for k in (2, 4):
        add(f"{k} nodes on a ray", study.node_part(study.cells(k), study.checksum), k)
        add(f"{k} segments, a node and a checksum each", study.node_part(study.cells(k), study.segments), k, k)
    for m in (2, 4):
        chance = by_steps(study.pool, study.density, study.chance, m)
        add(f"density of each ray from {m} segments", study.node_part(study.cells(1, chance), study.checksum), 1, m)
        add(f"the same with 2 nodes, {m} segments", study.node_part(study.cells(2, chance), study.checksum), 2, m)
    found["the pilot counts too"] = study.pilot_counts(coalitions + default) / rays()
    shared = study.own_shares()[0]
    add("floor: best shares of every ray", study.left(*study.own_shares()))
    add("floor: best shares of every half ray", study.left(*study.own_shares(2)), 2, 2)
    add("floor: best density of every ray", default * float(best.mean() / each.mean()))
    add("floor: best number of nodes on every ray", default * float(np.sqrt(each).mean() ** 2 / each.mean()))
    add("floor: best density and number", default * float(np.sqrt(best).mean() ** 2 / each.mean()))
    add("floor: best shares, density and number", float(np.sqrt(study.moments(shared)[1]).mean() ** 2))
    add("floor: no variance between coalitions", default, between=0.0)
    add("floor: no variance of nodes", 0.0)
    return found


def main() -> None:
    parser = options(__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where variance_pool.py wrote its files")
    given = parser.parse_args()
    ratios: dict[str, dict[str, float]] = {}
    cells: list[dict[str, Any]] = []
    for pool in load(given.folder):
        found = [ideas(Study(pool, seed)) for seed in range(1 if given.quick else N_PILOTS)]
        mean = {name: float(np.mean([one[name] for one in found])) for name in found[0]}
        rmse = float(np.sqrt(mean["default"] / pool.masks.shape[1]))
        cells.append({"cell": pool.name, "rays": len(pool.masks), "nodes": pool.rows.shape[1], "RMSE of default": rmse})
        for name, error in mean.items():
            ratios.setdefault(name, {})[pool.name] = float(np.sqrt(error / mean["default"]))
        print(pool.name, flush=True)
    lines = [
        {"idea": name, **row, "geometric mean": geometric_mean(list(row.values()))} for name, row in ratios.items()
    ]
    print(table("recorded rays", cells), table("RMSE divided by that of the default plan, equal cost", lines))
    write(given.out, "variance_ideas", {"cells": cells, "lines": lines})


if __name__ == "__main__":
    main()
