"""How many examples a property is tried with: few in `make test`, many times more in `make properties`, before a release."""

import os
from typing import Any

from hypothesis import settings

#: Set by `make properties`. With more than one, examples are random: those of `make test` are the same each time.
TIMES = int(os.environ.get("DYNAMO_EXAMPLES", "1"))
#: Of a property that names no number.
USUAL = 30


def examples(count: int, **options: Any) -> settings:
    """Settings of a property that is tried with another number of examples; `options` are those of hypothesis."""
    return settings(max_examples=count * TIMES, **options)


def load() -> None:
    """Makes the settings of all properties the default."""
    settings.register_profile("dynamo", max_examples=USUAL * TIMES, deadline=None, derandomize=TIMES == 1)
    settings.load_profile("dynamo")
