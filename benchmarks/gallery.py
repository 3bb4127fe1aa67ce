"""The gallery with 10 000 inputs in Chromium: the longest task of the page while a reader scrolls, filters and sorts.

python benchmarks/gallery.py [--quick] [--out benchmarks/results/gallery.json]

The tables of the run hold random numbers. A task is what blocks the page in one piece; the browser reports tasks of 50
ms and more (PerformanceObserver, "longtask"). `elements` counts the elements of the whole page after scrolling.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from report import options, table, verdict, write

import gralis
from gralis.many.result_tables import as_parquet, empty
from gralis.many.store import ResultsFolder, table_name

LONGEST, N = 200.0, 10_000
NAMES = ("age", "dose", "weight", "pulse", "sodium", "lactate", "glucose", "creatinine")
OBSERVE = """() => { window.tasks = [];
new PerformanceObserver((found) => window.tasks.push(...found.getEntries().map((each) => each.duration)))
.observe({ type: "longtask", buffered: true }); }"""
SCROLL = """async () => { const box = document.getElementById("list");
for (let at = 0; at <= 100; at++) {
  box.scrollTop = at / 100 * box.scrollHeight; await new Promise(requestAnimationFrame); } }"""


def large_run(folder: Path, n: int = N, names: tuple[str, ...] = NAMES, block: int = 500) -> gralis.many.Results:
    """As many rows as asked for, with random numbers in the tables of a run and nothing behind them."""
    rng, k = np.random.default_rng(0), len(names)
    run = ResultsFolder(folder, {"target": "predicted", "seed": 0})
    with run.writing():
        for number, start in enumerate(range(0, n, block)):
            ids = [f"case {i:05d}" for i in range(start, start + block)]
            phi = rng.standard_t(4, (block, k)) * np.linspace(2, 0.3, k)
            half = rng.gamma(2.0, 0.4, (block, k))
            failed = np.arange(start, start + block) % 97 == 5
            classes, labels = rng.integers(0, 3, block), rng.integers(0, 3, block)
            labels = np.where(rng.random(block) < 0.8, classes, labels)
            rows = [
                {"input": ids[i], "label": str(labels[i]), "failure": "The row has a hole."}
                if failed[i]
                else {
                    "input": ids[i],
                    "label": str(labels[i]),
                    "target": f"output[{classes[i]}]",
                    "n_features": k,
                    "f_x": float(phi[i].sum()) + 1,
                    "f_baseline": 1.0,
                    "sum_phi": float(phi[i].sum()),
                    "residual": float(rng.normal()),
                    "certificate": float(half[i].max()),
                    "certificate_level": 0.95,
                }
                for i in range(block)
            ]
            kept = ~failed
            columns = {
                "input": np.repeat(np.array(ids)[kept], k).tolist(),
                "feature": np.tile(np.arange(k, dtype=np.int32), int(kept.sum())),
                "name": list(names) * int(kept.sum()),
                "phi": phi[kept].ravel(),
                "stderr": half[kept].ravel() / 2,
                "half_width": half[kept].ravel(),
            }
            values = pa.Table.from_pydict(columns, schema=empty("values").schema)
            inputs = pa.Table.from_pylist(rows, schema=empty("inputs").schema)
            files = {table_name("values", number): as_parquet(values), table_name("inputs", number): as_parquet(inputs)}
            run.commit(number, ids, int(failed.sum()), 0.0, files)
    return gralis.many.Results(folder)


def browse(page_path: Path) -> dict[str, Any]:
    """Load the page, scroll from top to bottom, filter, sort and ask; the longest task of each in milliseconds."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    longest: dict[str, float] = {}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--headless", "--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.add_init_script(f"({OBSERVE})()")
        start = time.perf_counter()
        page.goto(page_path.as_uri())
        page.wait_for_selector("body[data-busy=false]", timeout=120_000)
        seconds = time.perf_counter() - start

        def step(name: str, act: Any) -> None:
            act()
            page.wait_for_timeout(400)  # the dots are drawn after the list
            longest[name] = max(page.evaluate("window.tasks.splice(0)"), default=0.0)

        step("load", lambda: None)
        step("scroll", lambda: page.evaluate(SCROLL))
        step("filter by class", lambda: page.select_option("#by-class", "1"))
        step("search", lambda: page.fill("#query", "case 0"))
        step("clear", lambda: page.click("#reset"))
        for key in ("width", "name", "residual"):
            step(f"sort by {key}", lambda key=key: page.select_option("#sort", key))
        for key in ("wrong", "decides", "uncertain", "all"):
            step(f"question {key}", lambda key=key: page.click(f"[data-question={key}]"))
        elements = page.evaluate("document.querySelectorAll('*').length")
        browser.close()
    return {"seconds_to_open": seconds, "longest_task_ms": longest, "elements": elements}


def run(n: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        results = large_run(Path(folder) / "results", n)
        start = time.perf_counter()
        page = gralis.gallery(results, Path(folder) / "gallery")
        seconds = time.perf_counter() - start
        size = sum(file.stat().st_size for file in page.parent.rglob("*") if file.is_file())
        return {"n": n, "seconds_to_write": seconds, "bytes": size, **browse(page)}


def show(result: dict[str, Any]) -> str:
    rows = [
        {"step": name, "longest task (ms)": duration, "target": verdict(duration, LONGEST, at_most=True)}
        for name, duration in result["longest_task_ms"].items()
    ]
    written = f"written in {result['seconds_to_write']:.1f} s, {result['bytes'] / 1e6:.1f} MB"
    opened = f"opened in {result['seconds_to_open']:.1f} s, {result['elements']} elements"
    return table(f"gallery of {result['n']} inputs: {written}, {opened}", rows)


def main() -> None:
    arguments = options(__doc__ or "").parse_args()
    result = run(1000 if arguments.quick else N)
    print(show(result))
    write(arguments.out, "gallery", result)


if __name__ == "__main__":
    main()
