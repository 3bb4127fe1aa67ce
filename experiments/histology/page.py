"""Stage 5: write all results to one page, and the same numbers and figures as text for the documentation.

python experiments/histology/page.py --data FOLDER --out OUT [--weights STATE_DICT] [--small]   (after shifts.py)

It writes page.html, histology.md and figures/. No number is written by hand.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import figures
from explain import explain, study
from section import Section
from sections import algorithm_1, clock, granularity, limits, residual, sigma
from setting import Setting, claimed, read_json
from story import cases_section, shifts_section, shown, story, tissue
from tried import tried_section

from gralis.bench import means, rows, write_page
from gralis.bench.text import gaps, losses, overview
from gralis.storage import write_text
from gralis.views.html_parts import number

IDC_AND_PCAM = """The figures of the companion paper on IDC and PCam cannot be reproduced from the data at hand, which
are patches of two IDC patients and five PCam patches. Two patients cannot be split into training and test patients so
that the test says anything about a third patient, and five patches cannot rank methods. If you have the whole data
sets, as a folder with labels.csv (file, label, patient), one command each runs the same study with a frozen backbone
and a linear probe:"""
_DENSENET = "--network densenet121 --probe 1 --weights densenet121.pt --side 224 --width 0"
COMMANDS = (
    f"make histology DATA=idc OUT=idc-output ARGS='{_DENSENET}'",
    f"make histology DATA=pcam OUT=pcam-output ARGS='{_DENSENET}'",
)


def page(setting: Setting) -> None:
    records = explain(setting)
    trained, six = read_json(setting.path("training.json")), shown(setting)
    methods = methods_section(setting, records)
    sections = [
        cases_section(setting, six),
        shifts_section(setting),
        methods,
        training(trained, setting.note),
        tried_section(setting),
    ]
    sections += [algorithm_1(setting), residual(setting), limits(records), sigma(setting), granularity(setting)]
    sections = [one for one in (*sections, clock(setting, trained, records)) if one]
    told = story(setting, trained, mean_deletion(records))
    done = [record for record in records if "error" not in record]
    about = [
        f"The study has {len(done)} held-out images of {len({one['about']['patient'] for one in done})} patients and "
        f"{len(study(setting, 1, 0).methods)} methods over the same superpixels. They explain the log-odds of the "
        "predicted class; the curves follow its probability. Only patients are independent, so the images of each "
        f"patient are averaged first. A picture has {setting.size[1]} x {setting.size[0]} pixels, and GRALIS has "
        f"{setting.budget(done[0]['n_features'])} gradients for it.",
        *gaps(records),
    ]
    listed = [(one.heading, one.html()) for one in sections if one is not methods]  # the page has tables of its own
    facts = {"images": str(len(done)), "held-out AUC": number(trained["test"].get("auc"))}
    tissue(setting, six)
    plain = [line.replace("*", "").strip() for line in told]
    write_page(
        setting.path("page.html"), records, title="Histology", about=[*plain, *about], facts=facts, sections=listed
    )
    text = markdown(setting, told, about, sections)
    write_text(setting.path("histology.md"), text)
    if setting.docs:
        beside = Path(setting.docs).parent / "figures"
        beside.mkdir(parents=True, exist_ok=True)
        write_text(setting.docs, text)
        for one in setting.path("figures").glob("*.png"):
            shutil.copy(one, beside / one.name)
    print(f"written: {setting.path('page.html')}, {setting.path('histology.md')}")


def training(trained: dict[str, Any], note: str) -> Section:
    test = trained["test"]
    names = ("accuracy", "balanced_accuracy", "patient_accuracy", "auc")
    if "nested" in trained:
        says = _probe_sentence(trained)
    else:
        start = (
            f"from {trained['weights']} ({trained['n_copied']} tensors fit)"
            if trained["n_copied"]
            else "from random weights"
        )
        says = (
            f"The network was trained {start} on {trained['train']['images']} images of "
            f"{trained['train']['patients']} patients. The number of epochs, {len(trained['history'])}, was fixed "
            f"beforehand. It was tested on {test['images']} images of {test['patients']} other patients."
        )
    if "auc_low" in test and "nested" not in trained:
        says += f" The 95% interval of the AUC over these patients is {test['auc_low']:.2f} to {test['auc_high']:.2f}."
        if test["auc_low"] <= 0.5 <= test["auc_high"]:
            says += (
                " This interval includes guessing. The following results are therefore about how faithfully the "
                "predictions of this network are explained, not about tissue."
            )
    says = f"{says} {note}".strip()
    seen = {name: trained["train"].get(name, float("nan")) for name in names}
    lines = [(name.replace("_", " "), float(test[name]), float(seen[name])) for name in names if name in test]
    return Section("The network", says, ("", "held out", "seen in training"), lines)


def _probe_sentence(trained: dict[str, Any]) -> str:
    """How good the probes on frozen features are over all patients, and how they were made."""
    whole = trained["nested"]
    patient, image = ("{:.3f} ({:.3f} to {:.3f})".format(*whole[name]) for name in ("patient_auc", "image_auc"))
    chosen = "; ".join(f"{', '.join(one['maps'])} (C = {one['penalty']})" for one in whole["chosen"])
    return (
        "The network is EfficientNet-Lite0 with its ImageNet weights, frozen; a logistic regression reads its pooled "
        f"maps. There are {whole['folds']} of them, one for each nested fold over the {whole['patients']} patients, "
        "with maps and penalty chosen inside the training patients of the fold. Every image is judged and explained by "
        f"the network that has not seen its patient. The area under the curve is {patient} for "
        f"patients and {image} for their {whole['images']} images (95% intervals over patients). Chosen were: {chosen}."
    )


def mean_deletion(records: list[dict[str, Any]]) -> dict[str, float]:
    """The mean area under the deletion curve of every method."""
    return {one.method: one.mean for one in means(rows(records)) if one.metric == "deletion"}


def methods_section(setting: Setting, records: list[dict[str, Any]]) -> Section:
    table = rows(records)
    averages = means(table)
    says = (
        "The table has means over patients with 95% half-widths. The page has curves, intervals and tests between all "
        f"methods. Where GRALIS loses (Holm p < 0.05): {losses(table)}."
    )
    drawn = figures.save(setting.path("figures", "histology-methods.png"), figures.methods, averages)
    return Section("Methods and metrics", says, *overview(averages), drawn)


def markdown(setting: Setting, told: list[str], about: list[str], sections: Sequence[Section]) -> str:
    given = {"DATA": setting.data, "WEIGHTS": setting.weights}
    words = [f"{name}={Path(value).name}" for name, value in given.items() if value]
    command = " ".join([f"make histology{'' if setting.data else '-small'}", *words])
    return "\n".join(
        [
            "# Histology\n",
            f"{told[0]}\n",
            *told[1:],
            "",
            sections[0].markdown(),
            "## The study\n",
            f"    {command}\n",
            *(f"{text}\n" for text in about),
            *(one.markdown() for one in sections[1:]),
            f"## IDC and PCam\n\n{IDC_AND_PCAM}\n",
            *(f"    {line}" for line in COMMANDS),
            "",
        ]
    )


if __name__ == "__main__":
    page(claimed(__doc__))
