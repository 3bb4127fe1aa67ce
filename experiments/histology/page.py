"""Stage 4: write all results to one page, and the same numbers and figures as text for the documentation.

python experiments/histology/page.py --data FOLDER --out OUT [--weights STATE_DICT] [--small]   (after studies.py)

It writes page.html, histology.md and figures/. No number is written by hand.
"""

from __future__ import annotations

import base64
import html
import os
import platform
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import figures
import numpy as np
import torch
from explain import make_model, source, study
from setting import Setting, claimed, read_json
from studies import read

from gralis.bench import comparisons, complaints, means, rows, run, write_page
from gralis.bench.text import losses, markdown_table, overview
from gralis.storage import write_text
from gralis.views.html_parts import html_table, number

PARTS = ("observed", "path", "numerical", "kernel")
LIMITS = ("singles", "gralis", "gralis_uniform")
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


@dataclass(frozen=True)
class Section:
    """A heading, a paragraph, a table and an optional figure."""

    heading: str
    says: str
    head: tuple[str, ...]
    lines: Sequence[Sequence[object]]
    figure: Path | None = None

    def html(self) -> str:
        return f"<p>{html.escape(self.says)}</p>{html_table(self.head, self.lines)}{self._picture()}"

    def _picture(self) -> str:
        if self.figure is None:
            return ""
        packed = base64.b64encode(self.figure.read_bytes()).decode()
        name = html.escape(self.heading)
        return f'<p><img alt="{name}" style="max-width: 100%" src="data:image/png;base64,{packed}"></p>'

    def markdown(self) -> str:
        shown = markdown_table(self.head, self.lines)
        picture = "" if self.figure is None else f"![{self.heading}](figures/{self.figure.name})\n\n"
        return f"## {self.heading}\n\n{self.says}\n\n{picture}{shown}\n"


def page(setting: Setting) -> None:
    images = source(setting)
    known = study(setting, setting.budget(images.load(0).features.n_features))  # type: ignore[union-attr]
    records = run(known, images, make_model(setting), setting.path("study"), workers=setting.workers, keep_ledgers=True)
    trained = read_json(setting.path("training.json"))
    sections = [one for one in (training(trained), algorithm_1(setting), residual(setting), limits(records)) if one]
    sections += [one for one in (sigma(setting), granularity(setting), clock(setting, trained, records)) if one]
    test, n_done = trained["test"], sum("error" not in record for record in records)
    about = [
        f"The study has {n_done} held-out images of {len({row['patient'] for row in images.labels})} patients and "
        f"{len(known.methods)} methods over the same superpixels. The methods explain the logit of the predicted "
        "class; the curves follow its probability. Only patients are independent, so the images of each patient are "
        "averaged first.",
        f"The network is right on {test['accuracy']:.1%} of {test['images']} images of patients that it has not seen.",
        *(f"Failed: {complaint}." for complaint in complaints(records)),
    ]
    facts = {
        "images": str(n_done),
        "gradients per image": str(known.budget),
        "held-out AUC": number(test.get("auc")),
    }
    shown = [(one.heading, one.html()) for one in sections]
    write_page(setting.path("page.html"), records, title="Histology", about=about, facts=facts, sections=shown)
    text = markdown(setting, records, about, sections)
    write_text(setting.path("histology.md"), text)
    if setting.docs:
        beside = Path(setting.docs).parent / "figures"
        beside.mkdir(parents=True, exist_ok=True)
        write_text(setting.docs, text)
        for one in setting.path("figures").glob("*.png"):
            shutil.copy(one, beside / one.name)
    print(f"written: {setting.path('page.html')}, {setting.path('histology.md')}")


def training(trained: dict[str, Any]) -> Section:
    test = trained["test"]
    names = ("accuracy", "balanced_accuracy", "patient_accuracy", "auc")
    if "nested" in trained:
        says = (
            f"{_probe_sentence(trained)} It was tested on {test['images']} images of {test['patients']} other patients."
        )
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
    if "auc_low" in test:
        says += f" The 95% interval of the AUC over these patients is {test['auc_low']:.2f} to {test['auc_high']:.2f}."
        if test["auc_low"] <= 0.5 <= test["auc_high"]:
            says += (
                " This interval includes guessing. The following results are therefore about how faithfully the "
                "predictions of this network are explained, not about tissue."
            )
    seen = {name: trained["train"].get(name, float("nan")) for name in names}
    lines = [(name.replace("_", " "), float(test[name]), float(seen[name])) for name in names if name in test]
    return Section("The network", says, ("", "held out", "seen in training"), lines)


def _probe_sentence(trained: dict[str, Any]) -> str:
    """How good the probe on frozen features is over all patients, and how the explained one was made."""
    whole, chosen = trained["nested"], trained["chosen"]
    patient, image = ("{:.3f} ({:.3f} to {:.3f})".format(*whole[name]) for name in ("patient_auc", "image_auc"))
    return (
        "The network is EfficientNet-Lite0 with its ImageNet weights, frozen; a logistic regression reads its pooled "
        "maps. "
        f"Over {whole['folds']} nested folds of {whole['patients']} patients, with maps and penalty chosen inside the "
        f"training patients of each fold, the area under the curve is {patient} for patients and {image} for their "
        f"{whole['images']} images (95% intervals over patients). The network that is explained was fitted on "
        f"{trained['train']['images']} images of {trained['train']['patients']} patients and uses "
        f"{', '.join(chosen['maps'])}."
    )


def algorithm_1(setting: Setting) -> Section | None:
    """Both plans on the same images. The checksum shows the bias of the quadrature."""
    studied = read(setting, "paper")
    lines = []
    for index, one in enumerate(studied):
        for name in ("algorithm_1", "shared"):
            e = one[name]
            if e is not None:
                check = e["checksum"] or {"mean": float("nan"), "rms": float("nan")}
                start = (index, name.replace("_", " "), e["n_gradients"], e["seconds"])
                same = one.get("rank_correlation", float("nan")) if name == "shared" else float("nan")
                parts = ("{:.3g} ± {:.2g}".format(*e["parts"][part]) for part in PARTS)
                lines.append((*start, *parts, check["mean"], check["rms"], e["B"], same))
    says = (
        f"Algorithm 1 ran with {setting.n_permutations} permutations in antithetic pairs, {setting.n_nodes} midpoints "
        f"on every ray and sigma {setting.sigma}. The table compares it with the default plan. Residuals, with 95% "
        "half-widths, are relative to |F(x) - F(x')|. The checksum of a ray is the sum of its values minus v(T). It is "
        "zero for exact quadrature. With fixed nodes its mean is a bias; with random nodes it is chance."
    )
    head = ("image", "plan", "gradients", "seconds", *PARTS, "checksum mean", "rms", "B", "rank correlation")
    return Section("Algorithm 1", says, head, lines) if lines else None


def residual(setting: Setting) -> Section | None:
    studied = read(setting, "residual")
    if not studied:
        return None
    lines = []
    for part in PARTS:
        values = np.array([one["parts"][part][0] for one in studied])
        half = np.array([one["parts"][part][1] for one in studied])
        clear = float(np.mean(np.abs(values) > half))
        lines.append(
            (part, float(np.median(values)), float(values.mean()), *np.quantile(values, (0.1, 0.9)).tolist(), clear)
        )
    B = np.array([one["B"] for one in studied])
    sizes = np.array([[abs(one["parts"][part][0]) for part in PARTS[1:]] for one in studied])
    shares = np.median(sizes / np.maximum(sizes.sum(1, keepdims=True), 1e-300), axis=0)
    says = (
        f"The residual is observed = path + numerical + kernel, on {len(studied)} images, relative to |F(x) - F(x')|. "
        "The path part is what straight paths of coalitions leave out. The numerical part comes from quadrature and "
        "sampling. The kernel part is the effect of locality. In size, the three parts make up "
        f"{shares[0]:.0%}, {shares[1]:.0%} and {shares[2]:.0%} (medians over the images). The constant B of the "
        "bounds, measured from below on the same ledgers, has "
        f"median {np.median(B):.3g} and maximum {B.max():.3g}."
    )
    calibrated = [one["B"] for one in read(setting, "bound")]
    if calibrated:
        bounds = ", ".join(f"{b:.3g}" for b in calibrated)
        says += f" A separate calibration pass on {len(calibrated)} images gave {bounds}."
    head = ("part", "median", "mean", "10%", "90%", "share of images where it is not 0 at 95%")
    drawn = figures.save(setting.path("figures", "histology-residual.png"), figures.residual, studied)
    return Section("The residual in its parts", says, head, lines, drawn)


def limits(records: list[dict[str, Any]]) -> Section:
    """Is a finite sigma better than both limits?"""
    table = [row for row in rows(records) if row.method in LIMITS]
    known = {(one.metric, one.method): one for one in means(table)}
    lines = []
    for metric in dict.fromkeys(row.metric for row in table):
        tests = {frozenset((t.a, t.b)): t for t in comparisons(table) if t.metric == metric}
        values = [known[metric, name].mean if (metric, name) in known else float("nan") for name in LIMITS]
        ps = [tests.get(frozenset(("gralis", other))) for other in ("singles", "gralis_uniform")]
        better = known[metric, "gralis"].better if (metric, "gralis") in known else ""
        lines.append((f"{metric} ({better})", *values, *(t.p_holm if t else float("nan") for t in ps)))
    says = (
        "The paper proposes this test of its motivation. It compares each feature alone, coalitions weighted by the "
        "kernel, and all coalitions with Shapley's weights."
    )
    head = ("metric", "sigma -> 0", "finite sigma", "sigma -> infinity", "p against 0", "p against infinity")
    return Section("Sigma to 0, finite, to infinity", says, head, lines)


def sigma(setting: Setting) -> Section | None:
    studied = read(setting, "sigma")
    names = ("residual", "error", "with_single", "with_uniform", "deletion", "insertion")
    if not studied:
        return None
    lines = []
    for index, first in enumerate(studied[0]["lines"]):
        of_all = [[one["lines"][index][name] for one in studied] for name in names]
        means_of = [float(np.mean([v for v in values if v is not None] or [np.nan])) for values in of_all]
        lines.append((first["sigma"], *means_of))
    says = (
        f"The table has means over {len(studied)} images. Each image has one ledger for every sigma. Correlations are "
        "rank correlations."
    )
    head = ("sigma", "residual", "error", "with sigma -> 0", "with sigma -> infinity", "deletion", "insertion")
    drawn = figures.save(setting.path("figures", "histology-sigma.png"), figures.over_sigma, studied)
    return Section("The width of the kernel", says, head, lines, drawn)


def granularity(setting: Setting) -> Section | None:
    studied = read(setting, "scales")
    if not studied:
        return None
    names = ("regions", "gradients", "deletion", "insertion", "residual", "error", "seconds")
    lines = []
    for index, first in enumerate(studied[0]["lines"]):
        lines.append(
            (first["asked"], *(float(np.mean([one["lines"][index][name] for one in studied])) for name in names))
        )
    says = (
        f"The table has means over {len(studied)} images. Deletion and insertion work on pixels and are shares of "
        "F(x) - F(x')."
    )
    drawn = figures.save(setting.path("figures", "histology-regions.png"), figures.over_regions, studied)
    return Section("The number of regions", says, ("requested", *names), lines, drawn)


def clock(setting: Setting, trained: dict[str, Any], records: list[dict[str, Any]]) -> Section:
    """The time that each stage took, in seconds of one process."""
    spent: dict[str, float] = {"training": trained["seconds"]}
    for record in records:
        for what, seconds in record.get("timings", {}).items():
            spent[what] = spent.get(what, 0.0) + seconds
    spent["Algorithm 1"] = sum(one["algorithm_1"]["seconds"] for one in read(setting, "paper"))
    spent["granularity"] = sum(line["seconds"] for one in read(setting, "scales") for line in one["lines"])
    total = spent.pop("all", 0.0)
    lines = [(what, float(round(seconds, 1))) for what, seconds in sorted(spent.items(), key=lambda pair: -pair[1])]
    machine = f"{os.cpu_count()} cores, {platform.machine()}, torch {torch.__version__}"
    return Section(
        "Time",
        f"The machine has {machine}. The study took {total:.0f} s in all processes together. {setting.remark}".strip(),
        ("stage", "seconds"),
        lines,
    )


def markdown(setting: Setting, records: list[dict[str, Any]], about: list[str], sections: list[Section]) -> str:
    table = rows(records)
    averages = means(table)
    says = (
        "The table has means over patients with 95% half-widths. The page has curves, intervals and tests between all "
        "methods."
    )
    drawn = figures.save(setting.path("figures", "histology-methods.png"), figures.methods, averages)
    methods = Section("Methods and metrics", says, *overview(averages), drawn)
    given = {"DATA": setting.data, "WEIGHTS": setting.weights}
    words = [f"{name}={Path(value).name}" for name, value in given.items() if value]
    command = " ".join([f"make histology{'' if setting.data else '-small'}", *words])
    return "\n".join(
        [
            "# Histology\n",
            f"    {command}\n",
            *(f"{text}\n" for text in about),
            methods.markdown(),
            f"Where GRALIS loses (Holm p < 0.05): {losses(table)}.\n",
            *(one.markdown() for one in sections),
            f"## IDC and PCam\n\n{IDC_AND_PCAM}\n",
            *(f"    {line}" for line in COMMANDS),
            "",
        ]
    )


if __name__ == "__main__":
    page(claimed(__doc__))
