"""EfficientNet-Lite0 on photographs: 8 methods over the same superpixels, scored by every metric, on one page.

python experiments/photographs/run.py --data FOLDER --out OUT [--limit N] [--workers N] [--budget N]

Files: a `gralis.bench` folder with tables, page.html and photographs.md; a run that was stopped goes on. What it
costs for one photograph of 30 regions, in evaluations of the network: one ledger of `budget` gradients for the six
methods that read one, and per method 62 forwards for deletion and insertion and 10 for ROAD. The metrics that run
methods again (max-sensitivity, stability; on 5 photographs) share their ledgers as well: 3 + 2 of them, not 6 times
as many. Batches of 8 with channels last: a forward takes three quarters of its time in the plain layout.
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

from gralis.bench import Pictures, Study, complaints, means, rows, run, write_page, write_tables
from gralis.bench.source import every_picture
from gralis.bench.text import losses, markdown_table, overview
from gralis.demo import load_network
from gralis.files.images import Preprocessing
from gralis.storage.container import write_text

METHODS = (
    *("gralis", "gralis_uniform", "integrated_gradients", "kernel_shap", "lime"),
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
    parser.add_argument("--remark", default="", help="on the circumstances of the run, printed with its times")
    parser.add_argument("--docs", type=Path, default=None, help="also write the text here")
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
    """The page; the text of the same tables, with the time that every part took."""
    spent: Counter[str] = Counter()
    for record in records:
        spent.update(record.get("timings", {}))
    total = spent.pop("all", 0.0)
    shares = ", ".join(f"{what} {100 * part / max(total, 1e-9):.0f}%" for what, part in spent.most_common(8))
    machine = f"{os.cpu_count()} cores, {platform.machine()}, torch {torch.__version__}"
    n_done = sum("error" not in record for record in records)
    about = [
        f"EfficientNet-Lite0 on {n_done} photographs at 224 x 224, {study.budget} gradients for each ledger. "
        "Methods explain the logit of the predicted class, curves follow its probability.",
        f"{total:.0f} s of work in all processes ({seconds:.0f} s in this run; {machine}): {shares}. {remark}".strip(),
    ]
    about += [f"Failed: {complaint}." for complaint in complaints(records)]
    facts = {"photographs": str(n_done), "methods": str(len(study.methods)), "gradients": str(study.budget)}
    write_page(out / "page.html", records, title="Photographs", about=about, facts=facts)
    table = rows(records)
    parts = ["# Photographs", "    make photographs DATA=FOLDER", *about, markdown_table(*overview(means(table)))]
    parts += ["Means with 95% half-widths.", f"Where GRALIS loses (Holm p < 0.05): {losses(table)}."]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    main()
