"""`python -m tests.e2e_compose`: `make e2e-compose` calls it."""

import sys

from tests.e2e.confined import confined

from .prepare import prepare, prepare_programs
from .run import options

if __name__ == "__main__":
    command = [sys.executable, "-m", "tests.e2e_compose.run", *sys.argv[1:]]
    sys.exit(confined(command, prepare_programs if options().built else prepare))
