"""The number of examples of property tests: few in `make test`, many more in `make properties`, before a release."""

import os
from typing import Any

from hypothesis import settings

#: Set by `make properties`. Above one, examples are random; those of `make test` are the same each time.
TIMES = int(os.environ.get("DYNAMO_EXAMPLES", "1"))
#: For a property that sets no number.
USUAL = 30


def examples(count: int, **options: Any) -> settings:
    """Settings of a property with another number of examples; `options` are those of hypothesis."""
    return settings(max_examples=count * TIMES, **options)


def load() -> None:
    """Makes the settings of all properties the default."""
    settings.register_profile("dynamo", max_examples=USUAL * TIMES, deadline=None, derandomize=TIMES == 1)
    settings.load_profile("dynamo")
