import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from dynamo_ctl import remote, running_platform
from dynamo_ctl.commands.remote import ApiOptions
from dynamo_ctl.errors import CtlError
from dynamo_ctl.running_platform import RunningPlatform, announced, claimed, find
from dynamo_ctl.targets import ClusterOptions

HERE = RunningPlatform(os.getpid(), "local", "nats://127.0.0.1:4222", "/k", "c")


def test_a_running_platform_is_detected_from_a_subfolder(tmp_path: Path) -> None:
    folder = tmp_path / running_platform.FOLDER
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    with claimed(folder):
        assert find(below) is None
        with pytest.raises(CtlError, match="a platform already runs in this folder; stop it first"), claimed(folder):
            pass
        with announced(folder, HERE):
            assert find(below) == HERE
            with (
                pytest.raises(CtlError, match=f"a platform already runs in this folder .process {HERE.pid}.;"),
                claimed(folder),
            ):
                pass
        assert find(below) is None
    with claimed(folder):
        pass


@pytest.mark.parametrize(
    ("given", "environment", "expected"),
    [
        (("", None, None), {}, ("http://localhost:5/", "/t", "/k")),
        (("", "/mine", None), {}, ("http://localhost:5/", "/mine", "/k")),
        (("", None, "/k"), {}, ("http://localhost:5/", None, "/k")),
        (("", None, None), {"DYNAMO_TOKEN": "x"}, ("http://localhost:5/", None, "/k")),
        (("https://other.test", None, None), {}, ("https://other.test", None, None)),
        (("http://127.0.0.1:5", None, None), {}, ("http://127.0.0.1:5", "/t", "/k")),
        (("http://127.0.0.1:6", None, None), {}, ("http://127.0.0.1:6", None, None)),
        (("http://127.0.0.1:many", None, None), {}, ("http://127.0.0.1:many", None, None)),
    ],
)
def test_commands_of_the_api_find_it_and_a_token_here(
    given: tuple[str, str | None, str | None],
    environment: dict[str, str],
    expected: tuple[str, str | None, str | None],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    opened: list[tuple[object, ...]] = []

    @asynccontextmanager
    async def open_(
        server: str, token_file: Path | None, cluster: ClusterOptions, _: str | None
    ) -> AsyncIterator[None]:
        opened.append((server, *(str(each) if each else None for each in (token_file, cluster.kubeconfig))))
        yield None

    async def nothing(_: object) -> None:
        return

    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DYNAMO_TOKEN", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(remote.Remote, "open", open_)
    server, *files = given
    folder, here = tmp_path / running_platform.FOLDER, replace(HERE, api="http://localhost:5/", token_file="/t")
    with claimed(folder), announced(folder, here):
        token_file, kubeconfig = (Path(each) if each else None for each in files)
        ApiOptions(server, token_file, kubeconfig).run(nothing, None)
    assert opened == [expected]


def test_a_folder_of_another_user_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its kubeconfig could start a program with the rights of the user who calls `get` in a folder below."""
    folder = tmp_path / running_platform.FOLDER
    with claimed(folder), announced(folder, HERE):
        assert find(tmp_path) == HERE
        monkeypatch.setattr(os, "getuid", lambda: folder.stat().st_uid + 1)
        assert find(tmp_path) is None


def test_the_file_of_a_dead_process_is_ignored(tmp_path: Path) -> None:
    """Also if another process has its id by now, as the first process of each container."""
    folder = tmp_path / running_platform.FOLDER
    folder.mkdir()
    (folder / running_platform.NAME).write_text(json.dumps(asdict(HERE)))
    assert find(tmp_path) is None
    with claimed(folder):
        assert find(tmp_path) is None, "the next one has not said yet where it is"


def test_a_command_that_ends_without_files_leaves_no_folder(tmp_path: Path) -> None:
    """`up` without a cluster left an empty folder `.dynamo`."""
    new, kept, given = tmp_path / "new", tmp_path / "kept", tmp_path / "given"
    given.mkdir()
    with pytest.raises(CtlError), claimed(new):
        raise CtlError("no cluster")
    with claimed(kept):
        (kept / "nats").mkdir()
    with claimed(given):
        pass
    assert [each.exists() for each in (new, kept, given)] == [False, True, True]


@pytest.mark.parametrize("content", ["", "{", "[]", '{"pid": 1}', '{"other": true}'])
def test_an_unreadable_file_of_a_platform_is_ignored(content: str, tmp_path: Path) -> None:
    folder = tmp_path / running_platform.FOLDER
    with claimed(folder):
        (folder / running_platform.NAME).write_text(content)
        assert find(tmp_path) is None
