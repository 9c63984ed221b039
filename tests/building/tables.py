"""Tables of tests whose rows are a world and its outcome, in one line of text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest


def table(rows: Mapping[str, tuple[Callable[[], Any], str]]) -> pytest.MarkDecorator:
    """Parameters `given`, which makes what there is, and `outcome`, by what a row is about."""
    return pytest.mark.parametrize(("given", "outcome"), rows.values(), ids=rows)
