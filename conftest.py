"""What a test or an example of a docstring registers is forgotten at its end."""

from collections.abc import Iterator

import pytest

from gralis import estimators
from gralis.faithfulness import METRICS
from gralis.kernels import stored
from gralis.methods import METHODS, registry
from gralis.plans import registry as plans
from gralis.report import panels
from gralis.views import plots

ENTRIES = [
    *(registry.data for registry in (METHODS, METRICS, estimators._BY_NAME, panels._PANELS)),
    *(registry.data for registry in (plans._FACTORIES, plots._KINDS, stored._REGISTERED)),
    registry._from_ledger,
]


@pytest.fixture(autouse=True)
def nothing_stays_registered() -> Iterator[list[dict]]:
    before = [dict(entries) for entries in ENTRIES]
    yield ENTRIES
    for entries, known in zip(ENTRIES, before, strict=True):
        entries.clear()
        entries.update(known)
