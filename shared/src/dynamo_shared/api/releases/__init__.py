"""What each release promised, and whether today's checkout keeps it.

`python -m dynamo_shared.api.releases` shows what changed since the last release, `check` fails where something was
changed against the deprecation policy (docs/policy.md), `freeze` writes the file of the release that is made.
"""

from __future__ import annotations

from dynamo_shared.api.releases.compare import Change, breaking, compare
from dynamo_shared.api.releases.history import releases, version_of
from dynamo_shared.api.releases.policy import NOTICE_RELEASES, violations
from dynamo_shared.api.releases.snapshot import Snapshot, today

__all__ = [
    "NOTICE_RELEASES",
    "Change",
    "Snapshot",
    "breaking",
    "compare",
    "releases",
    "today",
    "version_of",
    "violations",
]
