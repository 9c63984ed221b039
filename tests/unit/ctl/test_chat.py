"""`dynamoctl chat` without a message: each line of standard input is a message."""

import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest
from dynamo_ctl.commands.chat import conversation
from dynamo_ctl.commands.chat.conversation import Conversation
from dynamo_ctl.errors import CtlError
from dynamo_ctl.remote import ServerSentEvent

CHAT = """
import sys
from dynamo_ctl import interrupts
from dynamo_ctl.commands.chat import conversation

class Conversation:
    async def say(self, message, write):
        write(f"[{message}]")
        return {"completionTokens": 1}

print("begun", flush=True)
try:
    interrupts.run(conversation.chat(Conversation(), None, as_json=False))
except KeyboardInterrupt:
    sys.exit(130)
"""


def start() -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", CHAT],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    return process


def test_ctrl_c_ends_a_chat_that_waits_for_a_line() -> None:
    process = start()
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("hello\n")
    process.stdin.flush()
    assert process.stdout.readline() == "[hello]\n"
    process.send_signal(signal.SIGINT)
    try:
        assert process.wait(timeout=10) == 130
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("text", ["a\n\nb\u00fc\n", "a\n\n\nb\u00fc"])
def test_each_line_that_is_not_empty_is_a_message(text: str) -> None:
    out, _ = start().communicate(text, timeout=30)
    assert out == "[a]\n[b\u00fc]\n"


def test_a_chat_reads_its_lines_from_a_file(tmp_path_factory: pytest.TempPathFactory) -> None:
    file = tmp_path_factory.mktemp("chat") / "lines"
    file.write_text("a\nb\n")
    with file.open() as given:
        done = subprocess.run(
            [sys.executable, "-c", CHAT], stdin=given, capture_output=True, text=True, timeout=30, check=True
        )
    assert done.stdout == "begun\n[a]\n[b]\n"


@pytest.mark.parametrize(("piece", "shown"), [("so", "so\n"), ("", "")])
async def test_the_error_of_an_incomplete_answer_is_on_a_separate_line(
    piece: str, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    class Broken:
        async def say(self, _: str, write: Callable[[str], object]) -> dict[str, Any]:
            write(piece)
            raise CtlError("the connection ended")

    with pytest.raises(CtlError):
        await conversation.chat(cast("Any", Broken()), "?", as_json=False)
    assert capsys.readouterr().out == shown


async def test_a_piece_with_reasoning_and_text_is_shown_whole() -> None:
    class Answering:
        def path(self, *parts: str) -> str:
            return "/".join(parts)

        @asynccontextmanager
        async def stream(self, *_: object) -> AsyncIterator[AsyncIterator[ServerSentEvent]]:
            async def events() -> AsyncIterator[ServerSentEvent]:
                yield ServerSentEvent("delta", {"reasoning": "so ", "text": "yes"})
                yield ServerSentEvent("end", {})

            yield events()

    shown: list[str] = []
    conversation = Conversation(cast("Any", Answering()), "g", model="", system="", max_tokens=1)
    assert await conversation.say("?", shown.append) == {"text": "yes"}
    assert "".join(shown) == "so yes"
