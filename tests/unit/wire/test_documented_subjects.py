"""Subscriptions that the documents show to integrators are allowed for the NATS user `integrator`."""

import re
from pathlib import Path

import pytest
from dynamo_shared.bus.permissions import EVENT_READER, rights

ROOT = Path(__file__).parents[3]
#: The clusters of `dynamoctl up` and of `make demo`.
CLUSTERS = ("local", "demo")
_SUBSCRIPTION = re.compile(r"""subscribe(?: |\()['"](dynamo\.evt\.[^'"]+)['"]""")


@pytest.mark.parametrize("page", ["README.md", "docs/events.md"])
def test_a_documented_subscription_is_allowed(page: str) -> None:
    subscriptions = _SUBSCRIPTION.findall((ROOT / page).read_text(encoding="utf-8"))
    allowed = tuple(
        subject.removesuffix(">") for cluster in CLUSTERS for subject in rights(EVENT_READER, cluster).subscribe
    )
    assert subscriptions
    assert [each for each in subscriptions if not each.startswith(allowed)] == []
