"""The REST API as commands call it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import aiohttp
import pytest
from dynamo_ctl.errors import CtlError, ExitCode
from dynamo_ctl.remote import Remote


class Answering:
    """Stands for a session whose server answers every request alike."""

    status = 200

    def __init__(self, content: bytes) -> None:
        self.read = _returning(content)

    @asynccontextmanager
    async def request(self, *_: object, **__: object) -> AsyncIterator[Answering]:
        """The answer."""
        yield self


def _returning(content: bytes) -> Any:
    async def read() -> bytes:
        return content

    return read


async def test_a_page_in_place_of_an_answer_is_reported() -> None:
    """A wrong URL, or a proxy where people log in."""
    session = cast(aiohttp.ClientSession, Answering(b"<html>log in</html>"))
    with pytest.raises(CtlError) as refused:
        await Remote("https://p.test/", "token", session).request("GET", "/namespaces")
    assert refused.value.code == ExitCode.UNREACHABLE
    assert str(refused.value) == "https://p.test answers no JSON: is it the platform's REST API?"
