"""One small network, and inputs on which it can be explained within milliseconds."""

import pytest
import torch

pytest.importorskip("pyarrow")


@pytest.fixture(autouse=True)
def one_thread():
    """Bits depend on the number of threads."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
