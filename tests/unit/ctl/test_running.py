from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from dynamo_ctl import running
from dynamo_ctl.errors import CtlError
from dynamo_ctl.running import RunningPlatform, announced, claim, find

HERE = RunningPlatform(os.getpid(), "local", "nats://127.0.0.1:4222", "/k", "c")


def ended_process() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_a_running_platform_is_detected_from_a_subfolder(tmp_path: Path) -> None:
    folder = tmp_path / running.FOLDER
    claim(folder)
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    assert find(below) is None
    with announced(folder, HERE):
        assert find(below) == HERE
        with pytest.raises(CtlError, match="a platform runs here already"):
            claim(folder)
    assert find(below) is None
    claim(folder)


def test_the_note_of_a_dead_process_counts_for_nothing(tmp_path: Path) -> None:
    folder = tmp_path / running.FOLDER
    folder.mkdir()
    dead = RunningPlatform(ended_process(), "local", "nats://127.0.0.1:4222")
    with announced(folder, dead):
        assert find(tmp_path) is None
        claim(folder)


@pytest.mark.parametrize("content", ["", "{", "[]", '{"pid": 1}', '{"other": true}'])
def test_a_broken_note_counts_for_nothing(content: str, tmp_path: Path) -> None:
    folder = tmp_path / running.FOLDER
    folder.mkdir()
    (folder / running.NAME).write_text(content)
    assert find(tmp_path) is None


def test_a_note_of_another_owner_is_left_alone(tmp_path: Path) -> None:
    claim(tmp_path)
    other = RunningPlatform(os.getppid(), "other", "nats://127.0.0.1:4223")
    with announced(tmp_path, HERE):
        with announced(tmp_path, other):
            pass
        (tmp_path / running.NAME).write_text('{"pid": 1, "cluster": "x", "nats": "y"}')
    assert (tmp_path / running.NAME).exists()
