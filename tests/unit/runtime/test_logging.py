"""Nothing secret reaches a log line."""

from __future__ import annotations

from dynamo_shared.runtime.logging import MASK, mask_secrets


def masked(**fields):
    return dict(mask_secrets(None, "info", fields))


def test_values_of_fields_that_sound_like_secrets_are_masked():
    line = masked(password="a", nats_token="b", authorization="c", privateKey="d", key="ns/name", server="s")
    assert line == {
        "password": MASK,
        "nats_token": MASK,
        "authorization": MASK,
        "privateKey": MASK,
        "key": "ns/name",
        "server": "s",
    }


def test_user_names_and_passwords_in_addresses_are_masked():
    assert masked(event="cannot reach nats://u:p@host:4222, giving up")["event"] == (
        f"cannot reach nats://{MASK}@host:4222, giving up"
    )
    assert masked(event="http://host/path@x")["event"] == "http://host/path@x"
