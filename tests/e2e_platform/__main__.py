"""`python -m tests.e2e_platform`: both charts on a node of their own. `make e2e-platform` calls it."""

import sys

from tests.e2e import prepare as node
from tests.e2e.confined import confined

from .prepare import prepare
from .run import options

if __name__ == "__main__":
    command = [sys.executable, "-m", "tests.e2e_platform.run", *sys.argv[1:]]
    sys.exit(confined(command, node.prepare if options().built else prepare))
