"""All commands have one rule for the namespace: `-n`, else the context's, else the pod's, else `default`."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
import typer
import yaml
from dynamo_ctl import cli, running_platform
from dynamo_ctl.commands.parameters import Namespace
from dynamo_ctl.nats_targets import nats_server

from tests.building.http_server import Handler, served
from tests.unit.ctl.command_line import Dynamoctl, written

GRAPH = """
apiVersion: nvidia.com/v1beta1
kind: DynamoGraphDeployment
metadata: {name: chat}
spec:
  components:
  - name: Frontend
    type: frontend
    podTemplate: {spec: {containers: [{name: main, image: a:1}]}}
"""
DEPLOY = ("deploy", "chat", "--model", "m", "--backend", "vllm", "--dry-run", "client")


def kubeconfig(file: Path, namespace: str) -> Path:
    """A kubeconfig whose context has this namespace. Its cluster is not needed."""
    context = {"name": "a", "context": {"namespace": namespace, "cluster": "c", "user": "u"}}
    file.write_text(yaml.safe_dump({"contexts": [context], "current-context": "a"}))
    return file


@pytest.fixture
def team(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The namespace of the current context is `team`."""
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig(tmp_path / "team", "team")))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def called() -> Iterator[tuple[str, list[str]]]:
    """The URL of a server, and the paths that it refused."""
    paths: list[str] = []

    class Refusing(Handler):
        def reply(self) -> None:
            """Refuse a request."""
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            paths.append(self.path)
            self.answer(404, json.dumps({"title": "Not found", "detail": "absent"}).encode())

    with served(Refusing) as address:
        yield f"http://{address}", paths


@pytest.mark.usefixtures("team")
@pytest.mark.parametrize(
    "command",
    [
        ("get", "dgd"),
        ("get", "dcd", "chat"),
        ("scale", "chat", "Decode=3"),
        ("events", "--name", "chat"),
        ("logs", "chat"),
        ("chat", "chat", "hello"),
        ("deploy", "chat", "--model", "m", "--backend", "vllm"),
        ("estimate", "--model", "m", "--backend", "vllm"),
        ("dgdr", "plot", "qwen"),
        ("dgdr", "apply", "qwen"),
    ],
)
def test_commands_over_the_api_use_the_namespace_of_the_context(
    command: tuple[str, ...],
    called: tuple[str, list[str]],
    dynamoctl: Dynamoctl,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server, paths = called
    monkeypatch.setenv("DYNAMO_TOKEN", "token")
    other = kubeconfig(tmp_path / "other", "other")
    for options in ((), ("-n", "given"), ("--kubeconfig", str(other))):
        dynamoctl(*command, "--server", server, *options)
    monkeypatch.setenv("KUBECONFIG", "")
    monkeypatch.setenv("HOME", str(tmp_path))
    dynamoctl(*command, "--server", server)
    assert [path.split("/")[4] for path in paths] == ["team", "given", "other", "default"]


@pytest.mark.usefixtures("team")
def test_commands_without_a_server_use_the_namespace_of_the_context(dynamoctl: Dynamoctl, tmp_path: Path) -> None:
    graph = written(tmp_path, GRAPH)
    for options, expected in (((), "team"), (("-n", "given"), "given")):
        rendered = dynamoctl("render", graph, *options).objects
        assert {each["metadata"]["namespace"] for each in rendered} == {expected}
        (manifest,) = dynamoctl(*DEPLOY, *options).objects
        assert manifest["metadata"]["namespace"] == expected


@pytest.mark.usefixtures("team")
def test_commands_over_nats_use_the_namespace_of_the_context(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = kubeconfig(tmp_path / "other", "other")
    assert nats_server("nats://127.0.0.1:1", None, None).namespace() == "team"
    assert nats_server("nats://127.0.0.1:1", None, None).namespace(other) == "other"
    monkeypatch.setenv("DYNAMO_PLATFORM__KUBERNETES__KUBECONFIG", str(other))
    assert nats_server("nats://127.0.0.1:1", None, None).namespace() == "other"


@pytest.mark.usefixtures("team")
def test_the_platform_that_runs_here_has_its_own_context(
    dynamoctl: Dynamoctl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    local = kubeconfig(tmp_path / "local", "of-the-platform")
    here = running_platform.RunningPlatform(1, "demo", "nats://127.0.0.1:5", str(local))
    with (
        running_platform.claimed(tmp_path / running_platform.FOLDER),
        running_platform.announced(tmp_path / running_platform.FOLDER, here),
    ):
        assert nats_server(None, None, None).namespace() == "of-the-platform"
        (manifest,) = dynamoctl(*DEPLOY).objects
        assert manifest["metadata"]["namespace"] == "of-the-platform"
        monkeypatch.setenv("KUBECONFIG", "")
        assert nats_server(None, None, None).namespace() == "of-the-platform"


def test_no_command_has_its_own_rule() -> None:
    """Commands that the chart calls require the option."""
    shared = get_args(Namespace)[1].help
    options = [
        (command.name, option)
        for command in commands(typer.main.get_command(cli.app))
        for option in command.params
        if "--namespace" in option.opts
    ]
    assert len(options) > 10
    own = [name for name, each in options if each.default is not None or (each.help != shared and not each.required)]
    assert own == []


def commands(command: Any) -> Iterator[Any]:
    """A command and all below it."""
    yield command
    for each in getattr(command, "commands", {}).values():
        yield from commands(each)
