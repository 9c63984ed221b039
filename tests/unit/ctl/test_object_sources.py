"""Several streams of objects at once: an error of one ends the command, with its cause."""

import asyncio
import json
from collections.abc import AsyncGenerator
from typing import cast

import pytest
from dynamo_ctl.commands.get.sources import OfApi
from dynamo_ctl.errors import CtlError
from dynamo_ctl.remote import Remote, ServerSentEvent


class Broken:
    """An API whose stream of graphs works, and whose stream of components ends with an error."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    async def follow(self, path: str) -> AsyncGenerator[ServerSentEvent]:
        if "components" in path:
            raise self.error
        yield ServerSentEvent("ADDED", {"metadata": {"name": "g"}})
        await asyncio.Event().wait()


@pytest.mark.parametrize("error", [CtlError("refused"), json.JSONDecodeError("half an object", "{", 1)])
async def test_a_stream_that_fails_ends_the_command(error: Exception) -> None:
    """`get --watch` waited without end for the failed stream."""
    changes = OfApi(cast("Remote", Broken(error))).changes(["dgd", "dcd"], "team")

    async def drain() -> None:
        async for each in changes:
            assert each.kind == "dgd"

    with pytest.raises(type(error), match=str(error).partition(":")[0]):
        await asyncio.wait_for(drain(), 60)


async def test_watching_no_namespace_ends_the_command() -> None:
    """`get -A --watch` waited without end, and said nothing."""

    class Forbidden:
        async def listed(self, *_: str) -> dict[str, list[str]]:
            return {"items": []}

    with pytest.raises(CtlError, match="you may list graphs in no namespace"):
        await asyncio.wait_for(anext(OfApi(cast("Remote", Forbidden())).changes(["dgd"], "")), 9)
