"""The work of `dynamoctl chat`: sends messages to the REST API, and prints answers while they arrive."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any

from dynamo_shared.api.untrusted.words import escaped

from dynamo_ctl.errors import CtlError
from dynamo_ctl.remote import Remote

_CHUNK = 1 << 16


class Conversation:
    """One chat, with its history."""

    def __init__(self, remote: Remote, graph: str, *, model: str, system: str, max_tokens: int) -> None:
        self._remote = remote
        self._path = remote.path("deployments", graph, "chat")
        self._given: dict[str, Any] = {"maxTokens": max_tokens, **({"model": model} if model else {})}
        self._messages: list[dict[str, str]] = [{"role": "system", "content": system}] if system else []

    async def say(self, message: str, write: Callable[[str], object]) -> dict[str, Any]:
        """Send a message. `write` gets the answer in pieces. Returns the whole answer with its times. Raises CtlError."""
        messages = [*self._messages, {"role": "user", "content": message}]
        text: list[str] = []
        async with self._remote.stream("POST", self._path, {**self._given, "messages": messages}) as events:
            async for event in events:
                if event.name == "delta":
                    text.append(event.data.get("text") or "")
                    write((event.data.get("reasoning") or "") + text[-1])
                elif event.name in ("failed", "unauthorized", "error"):
                    raise CtlError(str(event.data["detail"]))
                elif event.name == "end":
                    answer = "".join(text)
                    self._messages = [*messages, {"role": "assistant", "content": answer}]
                    return {"text": answer, **event.data}
        raise CtlError("the connection ended before the answer was complete; try again")


async def chat(conversation: Conversation, message: str | None, *, as_json: bool) -> None:
    """Send one message, or each line of standard input that is not empty."""
    if message is not None:
        await _say(conversation, message, as_json=as_json)
        return
    prompt = "> " if sys.stdin.isatty() and not as_json else ""
    _write(prompt)
    async with aclosing(_lines(sys.stdin.fileno())) as given:
        async for line in given:
            if line:
                await _say(conversation, line, as_json=as_json)
            _write(prompt)


async def _say(conversation: Conversation, message: str, *, as_json: bool) -> None:
    if as_json:
        _write(json.dumps(await conversation.say(message, lambda _: None)) + "\n")
        return
    begun = False

    def write(text: str) -> None:
        nonlocal begun
        begun = begun or bool(text)
        _write(text)

    try:
        answer = await conversation.say(message, write)
    except BaseException:
        if begun:
            # The error message about an incomplete answer begins on a new line.
            _write("\n")
        raise
    _write("\n")
    sys.stderr.write(f"{_times(answer)}\n")


def _write(text: str) -> None:
    sys.stdout.write(escaped(text))
    sys.stdout.flush()


def _times(answer: dict[str, Any]) -> str:
    parts = [f"{answer['completionTokens']} tokens"]
    for name, title in (("ttftMs", "first after"), ("itlMs", "then one each"), ("totalMs", "in all")):
        if answer.get(name) is not None:
            parts.append(f"{title} {answer[name]:.1f} ms")
    return ", ".join(parts)


async def _lines(file: int) -> AsyncGenerator[str]:
    """Yields the lines of a file descriptor while they arrive, without their line breaks. Ctrl-C can interrupt it.

    A thread that reads a line cannot be cancelled, and a process waits for its threads.
    """
    rest = b""
    while True:
        await _readable(file)
        chunk = os.read(file, _CHUNK)
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole if chunk else [rest]:
            yield line.decode("utf-8", "replace").rstrip("\r")
        if not chunk:
            return


async def _readable(file: int) -> None:
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    try:
        loop.add_reader(file, ready.set)
    except PermissionError:
        # A file on a disk is always readable.
        return
    try:
        await ready.wait()
    finally:
        loop.remove_reader(file)
