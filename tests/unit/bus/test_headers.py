"""Headers of NATS messages are read as the library reads them, which takes four times as long."""

from dynamo_shared.bus.nats.session import _Client
from hypothesis import given
from hypothesis import strategies as st
from nats.aio.client import Client

# Texts that are easily taken for parts of other ones.
PIECES = [
    b":",
    b" ",
    b"\t",
    b"\r\n",
    b"\r",
    b"\n",
    b"\x0b",
    b"\x1c",
    b"\x85",
    b"\xc2\x85",
    b"\xe2\x80\xa8",
    b"a",
    b"B-c",
    b"\xff",
    "é".encode(),
]


def test_names_and_values_of_a_state_message() -> None:
    raw = b"uid: a-b\r\nresourceVersion: 12\r\ncreated:\r\nce-type:dynamo: x\r\n\r\n"
    expected = {"uid": "a-b", "resourceVersion": "12", "created": "", "ce-type": "dynamo: x"}
    assert _Client._parse_header_lines(raw) == expected


@given(st.lists(st.sampled_from(PIECES)).map(b"".join) | st.binary())
def test_any_bytes_are_read_as_by_the_library(raw: bytes) -> None:
    assert _Client._parse_header_lines(raw) == Client._parse_header_lines(raw)
