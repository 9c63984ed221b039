"""What each release promised, and whether today's checkout keeps it.

`python -m tools.releases` shows what changed since the last release, `check` fails where something was
changed against the deprecation policy (docs/policy.md), `freeze` writes the file of the release that is made.
"""

from tools.releases.compare import Change, breaking, compare
from tools.releases.history import releases
from tools.releases.policy import NOTICE_RELEASES, violations
from tools.releases.snapshot import Snapshot, today

__all__ = ["NOTICE_RELEASES", "Change", "Snapshot", "breaking", "compare", "releases", "today", "violations"]
