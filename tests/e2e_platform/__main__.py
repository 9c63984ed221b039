"""`python -m tests.e2e_platform`: both charts on a separate node, as `make e2e-platform` runs it."""

import os
import sys

from tests.e2e import prepare as node
from tests.e2e.configuration import FAMILY_VARIABLE
from tests.e2e.confined import confined

from .prepare import prepare
from .run import options

if __name__ == "__main__":
    chosen = options()
    os.environ[FAMILY_VARIABLE] = chosen.family
    command = [sys.executable, "-m", "tests.e2e_platform.run", *sys.argv[1:]]
    sys.exit(confined(command, node.prepare if chosen.built else prepare))
