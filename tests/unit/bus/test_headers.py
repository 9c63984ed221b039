"""Headers of NATS messages are parsed as the library parses them, which takes four times as long."""

from functools import partial

from dynamo_shared.bus.nats.client import NatsClient
from hypothesis import given
from hypothesis import strategies as st
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import BadHeaderError

# Texts that are easily mistaken for parts of headers.
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
    assert NatsClient._parse_header_lines(raw) == expected


@given(st.lists(st.sampled_from(PIECES)).map(b"".join) | st.binary())
def test_any_bytes_are_parsed_as_by_the_library(raw: bytes) -> None:
    assert NatsClient._parse_header_lines(raw) == Client._parse_header_lines(raw)


class Written(NatsClient):
    """A client that records what it would send."""

    def __init__(self) -> None:
        super().__init__(tls=False)
        self.commands: list[bytes] = []

    async def _send_command(self, cmd: bytes, priority: bool = False) -> None:
        self.commands.append(bytes(cmd))


TEXTS = st.lists(st.sampled_from(PIECES).map(lambda piece: piece.decode("utf-8", "replace"))).map("".join)


@given(st.dictionaries(TEXTS | st.just("uid"), TEXTS | st.text()))
async def test_any_headers_are_written_as_by_the_library(headers: dict[str, str]) -> None:
    faster, library = Written(), Written()
    refusals: list[str] = []
    for send in (faster._send_publish, partial(Client._send_publish, library)):
        try:
            await send("s", "r", b"payload", 7, headers)
        except BadHeaderError as error:
            refusals.append(repr(error))
    assert (faster.commands, faster.stats) == (library.commands, library.stats)
    assert not refusals or refusals[0] == refusals[1]


async def test_a_message_that_a_handler_rejects_is_reported_and_the_next_one_arrives() -> None:
    client, taken, errors = NatsClient(tls=False), list[bytes](), list[Exception]()

    def take(message: Msg) -> None:
        if message.data == b"bad":
            raise ValueError("bad")
        taken.append(message.data)

    async def report(error: Exception) -> None:
        errors.append(error)

    client._error_cb = report
    client._handlers[1] = take
    for data in (b"bad", b"good"):
        await client._process_msg(1, b"s", b"r", data, b"")
    assert taken == [b"good"]
    assert [str(each) for each in errors] == ["bad"]
