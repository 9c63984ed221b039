"""`python -m tests.e2e_legacy`: the printed examples of the kinds before graphs, on a separate node."""

import sys

from tests.e2e.confined import confined

from .prepare import prepare

if __name__ == "__main__":
    sys.exit(confined([sys.executable, "-m", "tests.e2e_legacy.run"], prepare))
