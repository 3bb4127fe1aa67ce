"""The page on faithfulness: its code runs, and its tables name every method and every metric."""

import re
from pathlib import Path

import gralis
from gralis import faithfulness

PAGE = (Path(__file__).parents[2] / "docs" / "faithfulness.md").read_text()


def test_the_code_runs() -> None:
    (block,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    scope: dict[str, object] = {}
    exec(compile(block, "docs/faithfulness.md", "exec"), scope)
    assert set(scope["scores"]) == {"gralis", "integrated_gradients", "gradcam", "random"}


def test_the_tables_are_complete() -> None:
    named = set(re.findall(r"`(\w+)`", "".join(line for line in PAGE.splitlines() if line.startswith("| `"))))
    assert {"rank_agreement", *faithfulness.METRICS, *gralis.methods.METHODS} <= named
