"""EfficientNet-Lite0 on photographs: 9 methods over the same superpixels, scored by 9 metrics, on one page.

python experiments/photographs/run.py --data FOLDER --out OUT [--limit N] [--workers N] [--budget N]

The script writes a `gralis.bench` folder with tables, page.html and photographs.md. A run that was stopped continues.
The cost for one photograph of 30 regions is one ledger of `budget` gradients for all methods that read a ledger, and
for each method 62 forwards for deletion and insertion and 10 for ROAD. The metrics that run methods again
(max-sensitivity and stability, on 5 photographs) share their ledgers too: they need 3 + 2 ledgers, not as many for each
method. Batches have 8 images with channels last: a forward then takes three quarters of its time in the plain layout.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from collections import Counter
from pathlib import Path
from typing import Any

import torch

from gralis.bench import Pictures, Study, complaints, every_picture, means, rows, run, write_page, write_tables
from gralis.bench.text import losses, markdown_table, overview
from gralis.demo import load_network
from gralis.files.images import Preprocessing
from gralis.storage import write_text

METHODS = (
    *("gralis", "gralis_uniform", "singles"),  # singles is the limit of gralis for sigma -> 0
    *("integrated_gradients", "kernel_shap", "lime"),
    *("gradcam", "occlusion", "random"),
)
METRICS = (
    *("deletion", "insertion", "road_morf", "road_lerf", "gini", "entropy", "completeness"),
    *("max_sensitivity", "stability"),
)
GREY = (0.5, 0.5, 0.5)  # (x - 0.5) / 0.5 is what the network was trained on; the baseline 0 is mid-grey


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("photographs-output"))
    parser.add_argument("--limit", type=int, default=None)
    parser.add_argument("--workers", type=int, default=None)
    parser.add_argument("--budget", type=int, default=384)
    parser.add_argument("--segments", type=int, default=30)
    parser.add_argument("--repeats-on", type=int, default=5)
    parser.add_argument("--remark", default="", help="a remark on the circumstances of the run, printed with its times")
    parser.add_argument("--docs", type=Path, default=None, help="also write the text to this file")
    given = parser.parse_args()
    source = Pictures(
        given.data, every_picture(given.data)[: given.limit], Preprocessing(224, 224, GREY, GREY), given.segments
    )
    study = Study(METHODS, METRICS, budget=given.budget, repeats_on=given.repeats_on, n_repeats=3)
    start = time.perf_counter()
    records = run(study, source, load_network, given.out, workers=given.workers)
    seconds = time.perf_counter() - start
    write_tables(records, given.out)
    text = written(given.out, records, study, seconds, given.remark)
    for path in filter(None, (given.out / "photographs.md", given.docs)):
        print(f"written: {write_text(path, text)}")


def written(out: Path, records: list[dict[str, Any]], study: Study, seconds: float, remark: str) -> str:
    """Write the page, and return the text of the same tables with the time that every part took."""
    spent: Counter[str] = Counter()
    for record in records:
        spent.update(record.get("timings", {}))
    total = spent.pop("all", 0.0)
    shares = ", ".join(f"{what} {100 * part / max(total, 1e-9):.0f}%" for what, part in spent.most_common(8))
    machine = f"{os.cpu_count()} cores, {platform.machine()}, torch {torch.__version__}"
    n_done = sum("error" not in record for record in records)
    about = [
        f"The study runs EfficientNet-Lite0 on {n_done} photographs at 224 x 224, with {study.budget} gradients for "
        "each ledger. The methods explain the logit of the predicted class; the curves follow its probability.",
        f"All processes together worked for {total:.0f} s ({seconds:.0f} s in this run; {machine}): {shares}. "
        f"{remark}".strip(),
    ]
    about += [f"Failed: {complaint}." for complaint in complaints(records)]
    facts = {"photographs": str(n_done), "methods": str(len(study.methods)), "gradients": str(study.budget)}
    write_page(out / "page.html", records, title="Photographs", about=about, facts=facts)
    table = rows(records)
    parts = ["# Photographs", "    make photographs DATA=FOLDER", *about, markdown_table(*overview(means(table)))]
    parts += ["The table has means with 95% half-widths.", f"Where GRALIS loses (Holm p < 0.05): {losses(table)}."]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    main()
