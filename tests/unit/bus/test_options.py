"""NATS options: contradictions are refused, secrets stay secret."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from dynamo_shared.bus.nats import NatsOptions
from dynamo_shared.bus.nats.options import BusOptionsError


def test_secrets_are_not_in_the_repr() -> None:
    shown = repr(NatsOptions(user="u", password="hush")) + repr(NatsOptions(token="hush"))
    assert "hush" not in shown


@pytest.mark.parametrize(
    "arguments",
    [
        {"servers": ("nats://user:hush@host:4222",)},
        {"servers": ()},
        {"user": "u", "password": "hush", "token": "hush"},
        {"cert_file": Path("/nowhere/cert")},
        {"ca_file": Path("/nowhere/ca")},
    ],
)
def test_what_cannot_work_is_refused_without_showing_secrets(arguments: dict[str, Any]) -> None:
    with pytest.raises(BusOptionsError) as caught:
        NatsOptions(**arguments)
    assert "hush" not in str(caught.value)
