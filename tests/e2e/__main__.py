"""`python -m tests.e2e [PYTEST ARGUMENTS]`: the tests of this folder, on a node of their own. `make e2e-runtime` calls it."""

import sys

from .confined import confined

if __name__ == "__main__":
    sys.exit(confined([sys.executable, "-m", "pytest", "tests/e2e", *sys.argv[1:]]))
