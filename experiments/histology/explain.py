"""Stage 2: run Algorithm 1 on a few held-out images, and the default plan at 1/40 of its budget on many.

python experiments/histology/explain.py --data FOLDER --out OUT [--weights STATE_DICT] [--small]   (after train.py)

It writes paper/NUMBER.gralis for every image of Algorithm 1, and study/, the folder of a `gralis.bench` run with
ledgers and all metrics.
"""

from __future__ import annotations

from typing import Any

from parts import Case, cases, parts
from setting import Setting, claimed

import gralis
from gralis.bench import Item, Study, run, write_tables
from gralis.problem import Problem


def study(setting: Setting, budget: int, repeats_on: int) -> Study:
    return Study(
        budget=budget,
        sigma=setting.sigma,
        readout="log_odds",  # of the predicted class
        repeats_on=repeats_on,
        n_repeats=setting.n_repeats,
        steps=setting.steps,
        seed=setting.seed,
    )


def explained(model: Any, item: Item) -> Any:
    """The log-odds of the predicted class."""
    k = Problem.build(model, item.x, target=0).predicted()
    assert isinstance(k, int)
    return gralis.targets.log_odds(k)


def algorithm_1(setting: Setting, model: Any, item: Item) -> gralis.Explanation:
    """Algorithm 1 with antithetic pairs: 30 permutations and 10 midpoints take 7 500 gradients for 25 regions."""
    assert item.features is not None
    return gralis.explain(
        model,
        item.x,
        target=explained(model, item),
        features=item.features,
        kernel=gralis.Gaussian(setting.sigma),
        plan=gralis.plans.permutation(setting.n_permutations, antithetic=True),
        quadrature="midpoint",
        n_nodes=setting.n_nodes,
        budget=setting.n_permutations * item.features.n_features * setting.n_nodes,
        seed=setting.seed,
    )


def explain(setting: Setting) -> list[dict[str, Any]]:
    """Compute the explanations that do not exist yet. The records are in the order of the study."""
    chosen = cases(setting)
    setting.path("paper").mkdir(exist_ok=True)
    for number, case in enumerate(chosen[: setting.n_paper]):
        path = setting.path("paper", f"{number}.gralis")
        if not path.is_file():
            explanation = algorithm_1(setting, *loaded(case))
            explanation.save(path)
            print(f"Algorithm 1, image {number}: {explanation.cost.n_gradients} gradients", flush=True)
    budget, found = setting.budget(n_features(chosen[0])), {}
    for part in parts(setting):
        settings = study(setting, budget, part.repeats_on)
        records = run(
            settings, part.source(), part.make_model(), part.folder, workers=setting.workers, keep_ledgers=True
        )
        print(f"{len(records)} images {part.name}".rstrip(), flush=True)
        found |= {record["image"]: record for record in records}
    records = [found[case.row["file"]] for case in chosen]
    write_tables(records, setting.path("study"))
    return records


def of_values(setting: Setting, model: Any, item: Item) -> dict[str, Any]:
    """The options of Shapley values from forwards alone."""
    options: dict[str, Any] = {"target": explained(model, item), "features": item.features, "batch_size": 8}
    return {**options, "plan": "values", "budget": setting.forwards, "progress": False}


def shapley(setting: Setting, number: int, case: Case) -> gralis.Explanation:
    """The Shapley values of an image of the study, computed once."""
    path = setting.path("shapley", f"{number}.gralis")
    if not path.is_file():
        path.parent.mkdir(exist_ok=True)
        model, item = loaded(case)
        gralis.explain(model, item.x, seed=setting.seed, **of_values(setting, model, item)).save(path)
    return gralis.load(path)


def loaded(case: Case) -> tuple[Any, Item]:
    """The network that has not seen the patient, and the image."""
    return case.part.make_model()(), case.part.source().load(case.index)


def n_features(case: Case) -> int:
    """The number of regions of an image."""
    features = case.part.source().load(case.index).features
    assert features is not None
    return features.n_features


if __name__ == "__main__":
    print(f"{len(explain(claimed(__doc__)))} images")
