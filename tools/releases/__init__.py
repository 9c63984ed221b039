"""The API surface of each release, and whether the checkout is compatible with it.

`python -m tools.releases` shows the changes since the last release, `check` fails if a change violates the deprecation
policy (docs/policy.md), `freeze` writes the file of a new release.
"""

from tools.releases.compare import Change, breaking, compare
from tools.releases.history import releases
from tools.releases.policy import NOTICE_RELEASES, violations
from tools.releases.snapshot import Snapshot, today

__all__ = ["NOTICE_RELEASES", "Change", "Snapshot", "breaking", "compare", "releases", "today", "violations"]
