"""Two networks on photographs with two baselines: nine methods at equal cost, scored by four metrics.

python experiments/photographs/run.py --data FOLDER --out OUT [--limit N] [--budget N] [--side PIXELS]

The script writes one JSON file for each photograph, network and baseline, then tables, page.html and photographs.md.
A run that was stopped continues. It uses one core, and with its defaults takes about half an hour for 25 photographs.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from equal_cost import Task
from mobilenet import load_mobilenet
from torch import nn

from gralis.bench import Pictures, every_picture, write_page, write_tables
from gralis.demo import load_network
from gralis.files.images import Preprocessing
from gralis.storage import write_text
from text import written

GREY = (0.5, 0.5, 0.5)  # (x - 0.5) / 0.5 goes into both networks; the baseline 0 is mid-grey
NETWORKS: dict[str, Callable[[], nn.Module]] = {"EfficientNet-Lite0": load_network, "MobileNetV2": load_mobilenet}
BASELINES: dict[str, float | str] = {"grey": 0.0, "blur": "blur"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("photographs-output"))
    parser.add_argument("--limit", type=int, default=None, help="use only so many photographs")
    parser.add_argument("--budget", type=int, default=128, help="gradients of the ledger of GRALIS")
    parser.add_argument("--side", type=int, default=160, help="pixels of a side")
    parser.add_argument("--segments", type=int, default=16)
    parser.add_argument("--repeats-on", type=int, default=3, help="photographs on which sampled methods run twice")
    parser.add_argument("--remark", default="", help="a remark on the circumstances of the run, printed with its times")
    parser.add_argument("--docs", type=Path, default=None, help="also write the text to this file")
    given = parser.parse_args()
    torch.set_num_threads(1)
    how = Preprocessing(given.side, given.side, GREY, GREY)
    source = Pictures(given.data, every_picture(given.data)[: given.limit], how, given.segments)
    records = all_records(source, given)
    write_tables(records, given.out)
    facts = {
        "photographs": str(len({one["about"]["patient"] for one in records if "error" not in one})),
        "gradients": str(given.budget),
        "side": str(given.side),
    }
    machine = f"{platform.machine()}, torch {torch.__version__}"
    text, about = written(records, facts, machine, given.remark)
    write_page(given.out / "page.html", records, title="Photographs", about=about, facts=facts)
    for path in filter(None, (given.out / "photographs.md", given.docs)):
        print(f"written: {write_text(path, text)}")


def all_records(source: Pictures, given: argparse.Namespace) -> list[dict[str, Any]]:
    """The record of every photograph with every network and baseline; finished ones are read."""
    records = []
    networks = {name: make().eval().to(memory_format=torch.channels_last) for name, make in NETWORKS.items()}  # type: ignore[call-overload]
    for index, name in enumerate(source.names()):
        try:
            item = source.load(index)
        except Exception as error:  # one broken picture must not end the run
            records.append({"image": name, "error": str(error)})
            continue
        for network, model in networks.items():
            for baseline, value in BASELINES.items():
                repeated = index < given.repeats_on
                setting = {"budget": given.budget, "repeated": repeated, "digest": source.digest(index)}
                setting |= source.settings()
                path = given.out / "records" / f"{network}-{baseline}-{Path(name).stem}.json"
                known = json.loads(path.read_text()) if path.is_file() else {}
                if known.get("setting") != json.loads(json.dumps(setting)):
                    start = time.process_time()
                    known = Task(model, item, value, given.budget).record(repeated)
                    known["image"] = f"{name}, {network}, {baseline}"
                    known["about"] = {"patient": name, "network": network, "baseline": baseline}
                    known |= {"setting": setting, "seconds": round(time.process_time() - start, 2)}
                    path.parent.mkdir(parents=True, exist_ok=True)
                    write_text(path, json.dumps(known))
                    print(f"{known['image']}: {known['seconds']} s", flush=True)
                records.append(known)
    return records


if __name__ == "__main__":
    main()
