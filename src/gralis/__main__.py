"""`python -m gralis`: the command line."""

import sys

from gralis.cli import main

if __name__ == "__main__":
    sys.exit(main())
