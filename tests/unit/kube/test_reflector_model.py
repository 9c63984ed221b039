"""The reflector against a model of the API server that does all that a server and a network can do, in any order.

Objects are created and deleted all the time; history is compacted and restored; requests fail, and answers are
invalid. In every case only consistent events are reported: an object is added once, modified while it exists, and
deleted once. As soon as the server behaves, all existing objects are reported.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager
from math import inf
from random import Random
from typing import Any
from unittest.mock import patch
from urllib.parse import parse_qsl

import pytest
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import PODS, ObjectKey
from dynamo_shared.kube import errors, reflector
from dynamo_shared.kube.reflector import Absent, ObjectChange, Reflector, Synced
from hypothesis import given
from hypothesis import strategies as st

#: Requests within which all is reported by a well-behaved server: its watches are short, and comparisons have six pages.
SOON = 300


@pytest.fixture(autouse=True, scope="module")
def always_compared() -> Iterator[None]:
    """The model's time has no seconds, so everything is compared after each watch."""
    with patch.object(reflector, "COMPARED_A_SECOND", inf):
        yield


class AllReportedError(Exception):
    """Exactly the existing objects are reported."""


class ModelServer:
    """Objects, their history, and faults of both. It is also the client: the arriving answers."""

    def __init__(self, chance: Random, *, restored: bool) -> None:
        self.reported: dict[str, tuple[str, str]] = {}
        self.chance = chance
        self.restored = restored
        self.misbehaves = True
        self._left = chance.randint(1, 100)
        self._number = self._forgotten = 10
        self._objects: dict[str, tuple[str, str]] = {}
        self._history: list[tuple[int, str, KubeObject]] = []
        self._poison: set[int] = set()
        self._backup: tuple[Any, ...] | None = None
        self._restores = 0
        self._pages: dict[str, tuple[int, list[KubeObject]]] = {}
        for _ in range(chance.randint(0, 10)):
            self._change()

    def _change(self) -> None:
        self._number += 1
        name = self.chance.choice("abcdef")
        uid = self._objects.get(name, (f"u{self.chance.getrandbits(32)}",))[0]
        kind = "ADDED" if name not in self._objects else self.chance.choice(("MODIFIED", "DELETED"))
        self._objects[name] = (uid, str(self._number))
        self._history.append((self._number, kind, self._object(name)))
        if kind == "DELETED":
            del self._objects[name]
        if self.chance.random() < 0.03:
            self._poison.add(self._number)

    def _object(self, name: str) -> KubeObject:
        uid, version = self._objects[name]
        return {"metadata": {"name": name, "namespace": "ns", "uid": uid, "resourceVersion": version}}

    def _live(self) -> None:
        """Let some time pass."""
        for _ in range(self.chance.choice((0, 0, 1, 2, 5))):
            self._change()
        match self.chance.randrange(15):
            case 0:
                self._forgotten = self._number
            case 1 if self.restored:
                self._backup = (self._number, dict(self._objects), list(self._history), self._forgotten)
            case 2:
                self._set_back()

    def _set_back(self) -> None:
        if self._backup is not None:
            self._number, objects, history, self._forgotten = self._backup
            self._objects, self._history = dict(objects), list(history)
            self._pages.clear()
            self._restores += 1

    def _arrive(self) -> None:
        self._left -= 1
        self.misbehaves = self._left > 0
        if self._left == 0:
            # The last step has the most influence.
            self._set_back()
            for _ in range(self.chance.randint(0, 30)):
                self._change()
        if self.misbehaves:
            self._live()
            if self.chance.random() < 0.25:
                status = self.chance.choice((0, 400, 401, 403, 404, 410, 429, 500, 503))
                raise errors.from_status(status, {"details": {"retryAfterSeconds": 1}})
        elif self.reported == self._objects:
            raise AllReportedError
        elif self._left < -SOON:
            pytest.fail(f"reported {self.reported}, there is {self._objects}")

    async def raw_get(self, path: str, accept: str = "") -> bytes:
        self._arrive()
        query = dict(parse_qsl(path.partition("?")[2]))
        limit = int(query.get("limit", "100"))
        if self.misbehaves and self.chance.random() < 0.1:
            if limit > 1 and self.chance.random() < 0.5:
                raise errors.ResponseTooLarge(200, "ResponseTooLarge", "")
            return self.chance.choice((b"<html>", b'{"kind":"Status","metadata":{}}', b"[]"))
        number, rest = self._number, [self._object(name) for name in sorted(self._objects)]
        if token := query.get("continue"):
            number, rest = self._pages.get(token, (0, []))
            if number < self._forgotten:
                raise errors.from_status(410, {"reason": "Expired"})
        token = ""
        if rest[limit:]:
            self._pages[token := f"t{len(self._pages)}"] = number, rest[limit:]
        metadata = {"resourceVersion": str(number), "continue": token}
        return json.dumps({"metadata": metadata, "items": rest[:limit]}).encode()

    @asynccontextmanager
    async def stream(self, resource: object, namespace: str, query: str, *, silence: float) -> AsyncIterator[Any]:
        self._arrive()
        yield ModelWatch(self, int(dict(parse_qsl(query))["resourceVersion"]))

    def watched(self, watch: ModelWatch) -> bytes:
        """The next line of a watch."""
        if watch.restores != self._restores:
            raise errors.Unavailable(0, "Unreachable", "the server was stopped to be set back")
        if watch.number < self._forgotten:
            return _line("ERROR", {"code": 410, "reason": "Expired"})
        if self.misbehaves:
            self._live()
            match self.chance.randrange(40):
                case 0:
                    raise errors.Unavailable(0, "Timeout", "")
                case 1:
                    return b"<html>\n"
                case 2:
                    return _line("ERROR", {"code": self.chance.choice((500, 504, "x", None))})
        later = [entry for entry in self._history if entry[0] > watch.number]
        # An event that the server cannot encode ends a watch.
        if watch.left == 0 or (later and later[0][0] in self._poison):
            return b""
        watch.left -= 1
        if not later:
            watch.number = max(watch.number, self._number)
            return _line("BOOKMARK", {"metadata": {"resourceVersion": str(watch.number)}})
        watch.number, kind, obj = later[0]
        return _line(kind, {"apiVersion": "v1", "kind": "Pod", **obj})


class ModelWatch:
    """A connection."""

    def __init__(self, server: ModelServer, number: int) -> None:
        self.number = number
        self.left = server.chance.randint(0, 12)
        self.restores = server._restores
        self._server = server

    async def readany(self) -> bytes:
        return self._server.watched(self)


def _line(kind: str, obj: KubeObject) -> bytes:
    return json.dumps({"type": kind, "object": obj}).encode() + b"\n"


async def _no_time(_seconds: float) -> None:
    pass


def _take(item: ObjectChange | Synced | Absent, reported: dict[str, tuple[str, str]], *, restored: bool) -> None:
    if isinstance(item, Synced):
        assert {key.name: version for key, version in item.versions.items()} == reported
    elif isinstance(item, Absent):
        assert reported == {}
    else:
        name, metadata = item.key.name, item.obj["metadata"]
        assert item.key == ObjectKey("ns", name)
        uid, version = metadata["uid"], metadata["resourceVersion"]
        assert (item.kind == "ADDED") == (name not in reported)
        if item.kind == "DELETED":
            # In a history that was never reported, another object had the name.
            assert restored or reported[name][0] == uid
            del reported[name]
            return
        assert reported.get(name) != (uid, version)
        assert reported.get(name, (uid, ""))[0] == uid
        reported[name] = (uid, version)


@pytest.mark.parametrize("restored", [False, True])
@given(chance=st.randoms(use_true_random=True))
def test_the_reported_objects_are_the_existing_ones_after_any_faults(restored: bool, chance: Random) -> None:
    async def follow() -> None:
        server = ModelServer(chance, restored=restored)
        followed = Reflector(
            server,  # type: ignore[arg-type]
            PODS,
            optional=chance.random() < 0.5,
            compare=restored or chance.random() < 0.5,
            page_size=chance.choice((1, 2, 3, 500)),
            sleep=_no_time,
            randomness=chance.random,
        )
        while True:
            async with aclosing(followed.changes()) as changes:
                async for item in changes:
                    _take(item, server.reported, restored=restored)
                    if chance.random() < 0.05:
                        break

    with pytest.raises(AllReportedError):
        asyncio.run(follow())
