"""A double for KubeClient where a command opens a client itself."""

from typing import Any, Self


class Opened:
    """`open`, and the context that it returns, are the object itself."""

    async def open(self, **_: Any) -> Self:
        return self

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass
