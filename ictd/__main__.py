"""`python -m ictd` is the command `ictd`."""

import sys

from ictd.book.entry import main

if __name__ == "__main__":
    sys.exit(main())
