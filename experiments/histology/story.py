"""The first lines of the page, for a pathologist, and six cases as pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import figures
import numpy as np
from explain import shapley
from numpy.typing import NDArray
from parts import Case, cases
from scipy.special import expit
from section import Section
from setting import Setting, read_json
from shifts import error
from studies import ledger_of, read

import gralis

KINDS = ("surest right", "surest wrong", "least sure")
OF_EACH = 2
SURE = 0.9  # the probability of a sure answer


@dataclass(frozen=True)
class Judged:
    """An image of the study, and what the network that has not seen its patient says about it."""

    number: int
    case: Case
    says: str  # a class
    log_odds: float  # of this class

    @property
    def right(self) -> bool:
        return self.says == self.case.row["label"]

    @property
    def probability(self) -> float:
        """The probability of the class that the network says."""
        return float(expit(self.log_odds))


@dataclass(frozen=True)
class Shown:
    """One case of the figure."""

    kind: str
    judged: Judged
    shapley: gralis.Explanation

    @property
    def picture(self) -> NDArray[np.float64]:
        """What the network saw, with values in [0, 1]."""
        source = self.judged.case.part.source()
        return source.preprocessing.picture(source.folder / self.judged.case.row["file"])


def judged(setting: Setting) -> list[Judged]:
    """Every image of the study."""
    trained = read_json(setting.path("training.json"))
    found = []
    for number, case in enumerate(cases(setting)):
        score = trained["log_odds"][case.row["file"]]
        found.append(Judged(number, case, trained["classes"][int(score > 0)], abs(score)))
    return found


def six(every: Sequence[Judged]) -> list[tuple[str, Judged]]:
    """Two of each kind: the surest that are right, the surest that are wrong, and those closest to even odds."""
    surest = sorted(every, key=lambda one: -one.log_odds)
    groups = ([one for one in surest if one.right], [one for one in surest if not one.right], surest[::-1])
    chosen: list[tuple[str, Judged]] = []
    for kind, group in zip(KINDS, groups, strict=True):
        taken = {one.number for _, one in chosen}
        chosen += [(kind, one) for one in [one for one in group if one.number not in taken][:OF_EACH]]
    return chosen


def shown(setting: Setting) -> list[Shown]:
    """The six cases with their Shapley values."""
    return [Shown(kind, one, shapley(setting, one.number, one.case)) for kind, one in six(judged(setting))]


def speaking(e: gralis.Explanation) -> tuple[int, int]:
    """How many regions speak for the answer and against it, with intervals that hold for all regions together."""
    interval = e.interval()
    return int((interval[:, 0] > 0).sum()), int((interval[:, 1] < 0).sum())


def cases_section(setting: Setting, chosen: Sequence[Shown]) -> Section:
    lines = []
    for letter, one in zip("abcdef", chosen, strict=False):
        e, judged = one.shapley, one.judged
        top, (up, down) = int(np.argmax(np.abs(e.values))), speaking(e)
        largest = f"{e.values[top]:+.2f} ± {e.half_widths()[top]:.2f}"
        says = f"{judged.says}, {judged.probability:.0%}"
        lines.append((letter, one.kind, judged.case.row["label"], says, up, down, largest))
    says = (
        "Cases by a rule, not by hand: the two surest right answers of the study, the two surest wrong ones, and the "
        "two closest to even odds. Above: every region in its mean colour (the pictures themselves are in tissue.png, "
        "which the run writes; their licence was not verified, so they are not here). Below: red regions speak for the "
        "network's answer, blue ones against it; a black outline says that the interval of the region excludes zero, "
        f"at 95% for all regions of the picture together. Shapley values of the log-odds, {setting.forwards} forwards."
    )
    head = ("", "kind", "pathologist", "network", "regions for it", "regions against it", "largest")
    drawn = figures.save(setting.path("figures", "histology-cases.png"), figures.cases, chosen, size=(10.0, 2.8))
    return Section("Six cases", says, head, lines, drawn)


def tissue(setting: Setting, chosen: Sequence[Shown]) -> Path:
    """The same figure with the pictures themselves; it stays beside the data."""
    return figures.save(setting.path("tissue.png"), figures.cases, chosen, True, size=(10.0, 2.8))


def story(setting: Setting, trained: dict[str, Any], curves: dict[str, float]) -> list[str]:
    """What a pathologist needs to know first."""
    test, every = trained["test"], judged(setting)
    found = [gralis.load(path) for path in sorted(setting.path("shapley").glob("*.gralis"))]
    regions = float(np.mean([e.n_features for e in found]))
    up, down = (float(np.mean([speaking(e)[k] for e in found])) for k in (0, 1))
    sure = [one for one in every if one.probability > SURE]
    wrong = sum(not one.right for one in sure)
    ledgers = [e for e in map(ledger_of, (one.case for one in every)) if e is not None]
    noise, told = (
        [float(statistic([of(e) for e in kind])) for kind in (found, ledgers)]
        for statistic, of in ((np.median, error), (np.mean, lambda e: sum(speaking(e)) / e.n_features))
    )
    lines = [
        "**For a pathologist.** A network looks at one picture of a breast tumour and says how likely it is malignant. "
        f"It is right on {test['accuracy']:.0%} of {test['images']} pictures of patients that it has not seen, and the "
        f"mean over a patient's pictures is right for {test['patient_accuracy']:.0%} of {test['patients']} patients. "
        "We asked which parts of a picture made it say so.\n",
        f"* *What the answer rests on.* A picture is cut into about {regions:.0f} regions. In {len(found)} pictures, "
        f"on average {up:.1f} of them speak for the answer and {down:.1f} against it beyond the error of computation "
        f"({setting.forwards} forwards); the others cannot be told from zero.",
        f"* *Is that what the network uses?* In {len(ledgers)} pictures the regions are turned grey, those that speak "
        f"most for the answer first: on the way the probability of the answer is {curves['gralis']:.2f} on average "
        f"(GRALIS), {curves['kernel_shap']:.2f} (KernelSHAP), and {curves['random']:.2f} if the order is random.",
        "* *What it does not say.* An explanation shows what moved the network, not where the tumour is; of a wrong "
        f"answer it shows the error. Of {len(every)} answers {len(sure)} have more than {SURE:.0%} probability, and "
        f"{wrong} of these are wrong.",
        f"* *How sure it is.* Shapley values have a median error of {noise[0]:.0%} of a typical value and tell "
        f"{told[0]:.0%} of the regions from zero; GRALIS, with the few gradients of this study, {noise[1]:.0%} and "
        f"{told[1]:.0%}.",
    ]
    shifted = read(setting, "shifts")
    if shifted:
        lines.append(_shift_sentence(shifted))
    return lines


def _shift_sentence(shifted: Sequence[dict[str, Any]]) -> str:
    def of(what: str, *words: str) -> list[float]:
        return [line[what] for one in shifted for line in one["lines"] if line["shift"].startswith(words)]

    stains, jpeg = ("haematoxylin", "eosin"), ("JPEG 90",)
    turned = of("flipped", *stains)
    return (
        f"* *Another laboratory.* If one stain is 20% weaker or stronger, {np.mean(of('changed', *stains)):.0%} of the "
        f"values change beyond doubt, by {np.median(of('relative', *stains)):.0%} of the explanation, but only "
        f"{np.mean(of('outside', *stains)):.0%} leave their stated intervals; {sum(turned)} of {len(turned)} answers "
        f"turn. Saved as a JPEG of quality 90, {np.mean(of('changed', *jpeg)):.0%} change, by "
        f"{np.median(of('relative', *jpeg)):.0%}, and {sum(of('flipped', *jpeg))} of {len(shifted)} answers turn."
    )


def shifts_section(setting: Setting) -> Section | None:
    studied = read(setting, "shifts")
    if not studied:
        return None
    lines = []
    for index, first in enumerate(studied[0]["lines"]):
        mine = [one["lines"][index] for one in studied]
        changed = np.array([one["changed"] for one in mine])
        half = 1.96 * changed.std(ddof=1) / len(changed) ** 0.5 if len(changed) > 1 else float("nan")
        moved = float(np.median([abs(one["log_odds"][1] - one["log_odds"][0]) for one in mine]))
        middle = (float(np.median([one[name] for one in mine])) for name in ("relative", "half_widths", "ranks"))
        lines.append(
            (
                first["shift"],
                f"{changed.mean():.0%} ± {half:.0%}",
                f"{np.mean([one['outside'] for one in mine]):.0%}",
                *middle,
                f"{sum(one['same_first'] for one in mine)} of {len(mine)}",
                moved,
                f"{sum(one['flipped'] for one in mine)} of {len(mine)}",
            )
        )
    patients = len({one["patient"] for one in studied})
    says = (
        f"{len(studied)} images of {patients} patients, each explained again under every shift: same regions, same "
        "coalitions, same class. Changed: the share of regions whose change has an interval (paired, 95% for all "
        "regions together) without zero, mean over the images ± 95%. Outside: regions whose new value lies outside the "
        "interval that was stated for the first picture. Change: its length relative to that of the explanation, and "
        "its median size in half-widths of the stated intervals (medians over the images, as the ranks and log-odds). "
        "The first line is a control: the same picture on other coalitions, which changes by chance only. The stains "
        "are separated by Ruifrok and Johnston's matrix; the files are JPEGs already and are compressed once more."
    )
    head = ("shift", "changed", "outside", "change", "in half-widths", "rank correlation", "same first region")
    return Section("Stains and compression", says, (*head, "log-odds moved", "answers turned"), lines)
