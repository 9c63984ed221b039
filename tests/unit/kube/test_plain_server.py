"""Requests on the wire: what is sent, and which answers count."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from dynamo_shared.api.resources import PODS, ObjectKey
from dynamo_shared.kube import KubeClient, errors
from dynamo_shared.kube.config import Connection
from dynamo_shared.kube.credentials import Credentials, Identity
from dynamo_shared.kube.transport import Transport

KEY = ObjectKey("ns", "a")
OK = b'HTTP/1.1 200 OK\r\nContent-Length: 17\r\n\r\n{"kind": "Pod"}\r\n'


class RawServer:
    """Answers each request with the next bytes; instead of empty ones, it ends the connection."""

    def __init__(self, *answers: bytes) -> None:
        self.answers = list(answers)
        self.heads: list[str] = []
        self.connections = 0

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while self.answers:
                self.heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
                if not (answer := self.answers.pop(0)):
                    return
                writer.write(answer)
            await reader.read()
        except asyncio.IncompleteReadError:
            pass
        finally:
            writer.close()


@asynccontextmanager
async def client_of(server: RawServer, path: str = "") -> AsyncIterator[KubeClient]:
    async with await asyncio.start_server(server.handle, "127.0.0.1", 0) as listener:
        url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}{path}"
        connection = Connection(url, None, None, None, Credentials(None), "default")
        transport = Transport(connection, timeout=5, sleep=asyncio.sleep)
        try:
            yield KubeClient(transport, field_manager="tester")
        finally:
            await transport.close()


async def test_the_path_of_the_server_precedes_that_of_the_object() -> None:
    server = RawServer(OK)
    async with client_of(server, "/k8s/clusters/c-1") as client:
        assert await client.get(PODS, KEY) == {"kind": "Pod"}
    line, *rest = server.heads[0].split("\r\n")
    assert line == "GET /k8s/clusters/c-1/api/v1/namespaces/ns/pods/a HTTP/1.1"
    sent = {each.partition(": ")[0]: each.partition(": ")[2] for each in rest if each}
    assert (sent["Accept"], sent["Accept-Encoding"]) == ("application/json", "identity")
    assert sent["Host"].startswith("127.0.0.1:")
    assert "Content-Length" not in sent


async def test_requests_share_a_connection() -> None:
    server = RawServer(OK, OK, OK)
    async with client_of(server) as client:
        for _ in range(3):
            await client.get(PODS, KEY)
    assert server.connections == 1


async def test_the_answer_after_an_interim_one_counts() -> None:
    server = RawServer(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + OK)
    async with client_of(server) as client:
        assert await client.get(PODS, KEY) == {"kind": "Pod"}


@pytest.mark.parametrize(
    "answer", [b"SSH-2.0-OpenSSH_9.6\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n", b""]
)
async def test_what_is_not_an_answer_is_unavailable(answer: bytes) -> None:
    server = RawServer(*[answer] * 9)
    async with client_of(server) as client:
        with pytest.raises(errors.Unavailable):
            await client.create(PODS, {"metadata": {"name": "a", "namespace": "ns"}})
    assert len(server.heads) == 1


@pytest.mark.parametrize(
    "identity", [Identity("a\r\nAuthorization: x"), Identity("a", groups=("g\nh: i",)), Identity("a", uid="\n\n")]
)
async def test_a_name_cannot_add_a_header(identity: Identity) -> None:
    server = RawServer(OK)
    async with client_of(server) as client:
        with pytest.raises(ValueError, match="control character"):
            await client.for_identity(identity, request="1", field_manager="tester").get(PODS, KEY)
    assert server.heads == []
