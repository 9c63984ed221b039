"""How many examples a property is tried with: few in `make test`, many times more in `make properties`, before a release."""

from __future__ import annotations

import os
from typing import Any

from hypothesis import settings

#: Set by `make properties`. With more than one, examples are random: those of `make test` are the same each time.
TIMES = int(os.environ.get("DYNAMO_EXAMPLES", "1"))


def examples(count: int, **options: Any) -> settings:
    """Settings of a property; `options` are those of hypothesis."""
    return settings(max_examples=count * TIMES, deadline=None, **{"derandomize": TIMES == 1, **options})
