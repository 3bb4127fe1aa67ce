"""`python -m gralis.verify`: the table on standard output; exit code 1 if a row fails."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

from gralis.paper.verify import SECTIONS, verify


def main(arguments: Sequence[str] | None = None) -> int:
    """0 if every row holds, 1 if one fails, 2 for arguments that make no sense."""
    parser = argparse.ArgumentParser(prog="python -m gralis.verify", description="The paper's claims, checked.")
    parser.add_argument("--only", nargs="+", choices=tuple(SECTIONS), metavar="SECTION", help=", ".join(SECTIONS))
    parser.add_argument("--json", action="store_true", help="rows as JSON")
    options = parser.parse_args(arguments)
    found = verify(options.only)
    print(json.dumps(found.to_dict(), indent=2) if options.json else found)
    return 0 if found.holds else 1


if __name__ == "__main__":
    sys.exit(main())
