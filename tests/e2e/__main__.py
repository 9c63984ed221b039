"""`python -m tests.e2e [PYTEST ARGUMENTS]`: run these tests on a separate node, as `make e2e-runtime` does."""

import sys

from .confined import confined

if __name__ == "__main__":
    sys.exit(confined([sys.executable, "-m", "pytest", "tests/e2e", *sys.argv[1:]]))
