"""Methods against metrics over many images: `gralis.bench.run`, and `gralis bench` on the command line.

study        what is asked of every image, and the record of one
source       where images come from; a folder of pictures with its labels.csv
repeats      methods run again (other seeds, perturbed images, random models), once for all of them
work         the images that are not yet done, over processes
store        one file per finished image: a run that was killed goes on where it was
tables       the records as tidy tables, CSV and Parquet
statistics   means with intervals, paired tests with Holm's correction
charts       curves and intervals as SVG
page, text   one HTML file; tables as Markdown
"""

from gralis.bench.page import page, write_page
from gralis.bench.source import Item, Pictures, Source
from gralis.bench.statistics import Comparison, Mean, comparisons, holm, means, paired_p
from gralis.bench.store import Store
from gralis.bench.study import Study, measure
from gralis.bench.tables import Failure, Row, complaints, failures, rows, write_tables
from gralis.bench.work import run

__all__ = [
    "Comparison",
    "Failure",
    "Item",
    "Mean",
    "Pictures",
    "Row",
    "Source",
    "Store",
    "Study",
    "comparisons",
    "complaints",
    "failures",
    "holm",
    "means",
    "measure",
    "page",
    "paired_p",
    "rows",
    "run",
    "write_page",
    "write_tables",
]
