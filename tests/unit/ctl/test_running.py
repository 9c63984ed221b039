from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path

import pytest
from dynamo_ctl import running
from dynamo_ctl.errors import CtlError
from dynamo_ctl.running import RunningPlatform, announced, claimed, find

HERE = RunningPlatform(os.getpid(), "local", "nats://127.0.0.1:4222", "/k", "c")


def test_a_running_platform_is_detected_from_a_subfolder(tmp_path: Path) -> None:
    folder = tmp_path / running.FOLDER
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    with claimed(folder):
        assert find(below) is None
        with pytest.raises(CtlError, match="a platform runs here already; stop it first"), claimed(folder):
            pass
        with announced(folder, HERE):
            assert find(below) == HERE
            with pytest.raises(CtlError, match=f"a platform runs here already .process {HERE.pid}.;"), claimed(folder):
                pass
        assert find(below) is None
    with claimed(folder):
        pass


def test_the_note_of_a_dead_process_counts_for_nothing(tmp_path: Path) -> None:
    """Not even where its number is that of another process by now, as that of the first in each container is."""
    folder = tmp_path / running.FOLDER
    with claimed(folder):
        pass
    (folder / running.NAME).write_text(json.dumps(asdict(HERE)))
    assert find(tmp_path) is None
    with claimed(folder):
        assert find(tmp_path) is None, "the next one has not said yet where it is"


@pytest.mark.parametrize("content", ["", "{", "[]", '{"pid": 1}', '{"other": true}'])
def test_a_broken_note_counts_for_nothing(content: str, tmp_path: Path) -> None:
    folder = tmp_path / running.FOLDER
    with claimed(folder):
        (folder / running.NAME).write_text(content)
        assert find(tmp_path) is None
