"""No secret reaches a log line."""

import json
import subprocess
import sys

import pytest
from dynamo_shared.api.untrusted.words import MASK
from dynamo_shared.runtime.logging import mask_secrets

PROGRAM = """
import logging, sys, structlog
from aiohttp.web import RequestPayloadError
from dynamo_shared.runtime.logging import configure_logging
configure_logging(level="info", style=sys.argv[1])
log = structlog.get_logger("test")
hidden = "hunter2-local"
log.debug("never")
with structlog.contextvars.bound_contextvars(key="default/llama"):
    log.info("said", count=3, parts={"password": "hunter2", "at": ["nats://me:hunter2@host"]}, path=object)
    try:
        raise ConnectionError("nats://me:hunter2@host:4222 refused")
    except ConnectionError:
        log.exception("failed")
logging.getLogger("library").warning("http://me:hunter2@host is %s", "slow")
logging.getLogger("library").info("never")
try:
    raise RequestPayloadError("Can not decode content-encoding: gzip")
except RequestPayloadError:
    logging.getLogger("aiohttp.server").error("Unhandled exception never", exc_info=True)
log.info("quotes", key="\\x1b]0;title\\x07\\x9b2J\\u202e", parts=["\\x1b"])
"""


def masked(**fields):
    return dict(mask_secrets(None, "info", fields))


def test_values_of_fields_with_secret_names_are_masked():
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


def test_nested_fields_are_masked():
    line = masked(settings={"nats": {"token": "a", "servers": ["nats://u:p@host"]}}, count=1, ports=(1, 2))
    assert line == {
        "settings": {"nats": {"token": MASK, "servers": [f"nats://{MASK}@host"]}},
        "count": 1,
        "ports": [1, 2],
    }
    # The name of an API group.
    assert masked(objects={"roles.rbac.authorization.k8s.io": 3})["objects"] == {"roles.rbac.authorization.k8s.io": 3}


@pytest.mark.parametrize("style", ["json", "console"])
def test_log_lines_of_the_platform_and_of_libraries_hold_no_secret_and_no_local_variable(style):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM, style], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == ""
    assert "hunter2" not in done.stderr
    assert "never" not in done.stderr
    assert "ConnectionError" in done.stderr
    # Texts of others cannot move the cursor of a reader's terminal.
    assert done.stderr.replace("\n", "").isprintable()
    if style == "json":
        lines = [json.loads(line) for line in done.stderr.splitlines()]
        assert [(line["level"], line["event"]) for line in lines] == [
            ("info", "said"),
            ("error", "failed"),
            ("warning", f"http://{MASK}@host is slow"),
            ("info", "quotes"),
        ]
        assert [line.get("key") for line in lines] == [
            "default/llama",
            "default/llama",
            None,
            "\x1b]0;title\x07\x9b2J\u202e",
        ]
        assert "Traceback" in lines[1]["exception"]
