"""Stage 2: run Algorithm 1 on a few held-out images, and the default plan at 1/20 of its budget on many.

python experiments/histology/explain.py --data FOLDER --out OUT [--weights STATE_DICT] [--small]   (after train.py)

It writes paper/NUMBER.gralis for every image of Algorithm 1, and study/, the folder of a `gralis.bench` run with
ledgers and all metrics.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from images import Labels, folder, split, spread
from network import build
from setting import Setting, claimed, read_json

import gralis
from gralis.bench import Item, Pictures, Study, read_labels, run, write_tables
from gralis.files.images import Preprocessing
from gralis.problem import Problem


def held_out(setting: Setting) -> Labels:
    """The images of the study in order. Algorithm 1 uses the first of them."""
    labels = read_labels(folder(setting) / "labels.csv")
    return spread(split(labels, setting.test_share, setting.seed)[1], setting.n_images, setting.seed)


def source(setting: Setting) -> Pictures:
    trained = read_json(setting.path("training.json"))
    how = Preprocessing(*setting.size, tuple(trained["mean"]), tuple(trained["std"]))
    return Pictures(folder(setting), tuple(held_out(setting)), how, setting.segments, setting.compactness)


def make_model(setting: Setting) -> Callable[[], Any]:
    n_classes = len(read_json(setting.path("training.json"))["classes"])
    return partial(build, setting.network, n_classes, str(setting.path("model.pt")))


def study(setting: Setting, budget: int) -> Study:
    return Study(
        budget=budget,
        sigma=setting.sigma,
        repeats_on=setting.repeats_on,
        n_repeats=setting.n_repeats,
        seed=setting.seed,
    )


def algorithm_1(setting: Setting, model: Any, item: Item) -> gralis.Explanation:
    """Algorithm 1 with antithetic pairs: 30 permutations and 10 midpoints take 7 500 gradients for 25 regions."""
    assert item.features is not None
    return gralis.explain(
        model,
        item.x,
        target=Problem.build(model, item.x, target=0).predicted(),
        features=item.features,
        kernel=gralis.Gaussian(setting.sigma),
        plan=gralis.plans.permutation(setting.n_permutations, antithetic=True),
        quadrature="midpoint",
        n_nodes=setting.n_nodes,
        budget=setting.n_permutations * item.features.n_features * setting.n_nodes,
        seed=setting.seed,
    )


def explain(setting: Setting) -> list[dict[str, Any]]:
    """Compute the explanations that do not exist yet."""
    images, make = source(setting), make_model(setting)
    model = make()
    setting.path("paper").mkdir(exist_ok=True)
    for number in range(min(setting.n_paper, len(images.names()))):
        path = setting.path("paper", f"{number}.gralis")
        if not path.is_file():
            explanation = algorithm_1(setting, model, images.load(number))
            explanation.save(path)
            print(f"Algorithm 1, image {number}: {explanation.cost.n_gradients} gradients", flush=True)
    features = images.load(0).features
    assert features is not None
    settings = study(setting, setting.budget(features.n_features))
    records = run(settings, images, make, setting.path("study"), workers=setting.workers, keep_ledgers=True)
    write_tables(records, setting.path("study"))
    return records


if __name__ == "__main__":
    print(f"{len(explain(claimed(__doc__)))} images")
