"""Methods against metrics over many images: `gralis.bench.run`, and `gralis bench` on the command line.

study        methods and metrics on one image, and the record of the results; metric_names: how metrics are named
repeats      methods that are run again (other seeds, perturbed images, random models)
run_study    `run`: the images that are not finished yet, on several processes
store        the folder of a study, which a run that was killed continues
scores       the records as rows, and what failed
statistics   means with intervals, paired tests with Holm's correction
tables       CSV and Parquet
charts       curves and intervals as SVG
study_page   one HTML file; text: tables as Markdown

The images come from `gralis.many`: `Pictures`, any other `Source`, or whatever `explain_many` takes.
"""

from gralis.bench.run_study import run
from gralis.bench.scores import FailureCount, ScoreRow, complaints, failures, rows
from gralis.bench.statistics import Mean, PairedTest, comparisons, holm, means, paired_p
from gralis.bench.store import Store
from gralis.bench.study import Study, measure
from gralis.bench.study_page import page, write_page
from gralis.bench.tables import write_tables
from gralis.many.items import Item, Source
from gralis.many.pictures import Pictures, every_picture, read_labels

Comparison, Failure, Row = PairedTest, FailureCount, ScoreRow  # their names in version 0.1

__all__ = [
    "Comparison",
    "Failure",
    "FailureCount",
    "Item",
    "Mean",
    "PairedTest",
    "Pictures",
    "Row",
    "ScoreRow",
    "Source",
    "Store",
    "Study",
    "comparisons",
    "complaints",
    "every_picture",
    "failures",
    "holm",
    "means",
    "measure",
    "page",
    "paired_p",
    "read_labels",
    "rows",
    "run",
    "write_page",
    "write_tables",
]
