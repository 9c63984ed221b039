import os
import subprocess
import sys
from collections.abc import Coroutine
from pathlib import Path

import pytest
from dynamo_ctl import cli, interrupts, services
from dynamo_ctl import settings as ctl_settings
from dynamo_ctl.commands.demo import run as demo
from dynamo_ctl.commands.run import serving
from dynamo_ctl.commands.up import platform
from dynamo_ctl.errors import CtlError, ExitCode, explain
from dynamo_devcluster import LocalClusterError
from dynamo_shared.bus import BusUnavailableError
from dynamo_shared.kube import ConfigError, Forbidden, Invalid, Unavailable
from dynamo_shared.leases.errors import EtcdUnavailableError
from dynamo_shared.runtime.settings import InvalidSettings, Settings

EXAMPLE = Path(__file__).parents[3] / "examples" / "vllm-agg.yaml"
KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: a
contexts: [{name: a, context: {cluster: a, user: a}}]
clusters: [{name: a, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: a, user: {token: t}}]
"""
NAMES = ("demo", "up", "run", "render", "convert", "get", "events", "scale", "crds")


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Run in a folder without a running platform, without a cluster, and without variables."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.delenv(cli.DEBUG, raising=False)
    monkeypatch.delenv("DYNAMO_SERVER_URL", raising=False)


@pytest.mark.parametrize("option", ["--help", "-h"])
def test_help_names_every_command(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.invoke([option]) == ExitCode.OK
    out = capsys.readouterr().out
    for name in NAMES:
        assert f"\n  {name} " in out
    assert "..." not in out.partition("Commands:")[2], "a summary does not fit into 80 columns"


@pytest.mark.parametrize("name", NAMES)
def test_each_command_explains_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.invoke([name, "--help"]) == ExitCode.OK
    assert f"Usage: dynamoctl {name}" in capsys.readouterr().out


WRONG: list[tuple[list[str], str]] = [
    (["nothing"], "dynamoctl: No such command 'nothing'; see dynamoctl --help"),
    (["rendr"], "dynamoctl: No such command 'rendr'. Did you mean 'render'? See dynamoctl --help"),
    (["get", "pods/a"], "dynamoctl: pods: get shows dgd, dcd or all; kubectl get shows other kinds"),
    (["get", "dgd/a", "b"], "dynamoctl: dgd/a: write KIND NAME or KIND/NAME"),
    (["get", "dgd/"], "dynamoctl: dgd/: write KIND NAME or KIND/NAME"),
    (["events", "--kind", "pods"], "dynamoctl: --kind pods: this kind has no events; use one of "),
    (["events", "--type", "red"], "dynamoctl: --type red: unknown event; use one of "),
    (["render"], "dynamoctl render: Missing argument"),
    (["run", "scheduler"], "dynamoctl: unknown services: scheduler; use some of all, admission, watcher, pod-builder"),
    (["run", "all"], "dynamoctl: admission: the API server needs an address to call"),
    (["up", "--local", "--kubeconfig", "f"], "dynamoctl: --local starts its own cluster"),
    (
        ["scale", "llama", "Decode=many"],
        "dynamoctl: Decode=many: write COMPONENT=N, such as Decode=3; N has 9 digits at most",
    ),
    (["logs", "pods/a"], "'pods/a' is not a graph: write NAME or dgd/NAME"),
    (["chat", "dgd/"], "'dgd/' is not a graph: write NAME or dgd/NAME"),
    (["chat", "llama", " "], "MESSAGE: must not be empty; write a message, or omit it to type several"),
    (["render", "-n", "Bad_", "f"], "'Bad_' is not a valid name of a namespace: use up to 63"),
    (["chat", "llama", "-n", "-a"], "'-a' is not a valid name of a namespace"),
    (["get", "-n", "a.b"], "'a.b' is not a valid name of a namespace"),
    (["events", "-n", "Team"], "'Team' is not a valid name of a namespace"),
    (["workers", "-n", "a.b"], "'a.b' is not a valid name of a namespace"),
    (["bootstrap", "webhooks", "-n", "A"], "'A' is not a valid name of a namespace"),
    (["crds", "--dry-run"], "--dry-run requires --store: add --store, or remove --dry-run"),
    (["crds", "--wait", "3"], "--wait requires --install: add --install, or remove --wait"),
    (["scale", "llama", "Decode=1", "-n", "A"], "'A' is not a valid name of a namespace"),
    (["get", "--server", "http://platform.test"], "tokens are sent to other machines only over https"),
    (["events", "--server", "https://p.test", "--type", "ready"], "--type: not allowed with --server"),
    (["get", "--server", "https://p.test", "--context", "b"], "--context: not allowed with --server"),
    (["get", "--token-file", "t"], "--token-file: only with --server, which gets the token"),
    (["events", "--server", "https://p.test", "--config", "c"], "--config: not allowed with --server"),
    (["scale", "g", "Decode=1", "--server", "https://p.test", "-c", "c"], "--config: not allowed with --server"),
    (["deploy", "-f", "f", "-c", "c"], "Invalid value for --config: requires --dry-run client"),
    (["dgdr", "plot", "q", "--server", "https://p.test", "--context", "b"], "--context: not allowed with --server"),
    (
        ["dgdr", "plot", "q", "--file", "f.pdf"],
        "'f.pdf' is not the name of an image or page: use a name that ends in .png or .html",
    ),
    (["dgdr", "apply", "q", "--server", "https://p.test", "--context", "b"], "--context: not allowed with --server"),
    (
        ["deploy"],
        "dynamoctl: missing: NAME, --model MODEL, --backend NAME (or --ttft MS); or give an intent with -f FILE",
    ),
    (
        ["deploy", "q", "--model", "m", "--dry-run", "client"],
        "dynamoctl: missing: --backend NAME (or --ttft MS); or give",
    ),
    (["estimate"], "dynamoctl: missing: --model MODEL; or give an intent with -f FILE"),
    (["events", "--since", "soon"], "dynamoctl: --since soon: write a duration such as 90s"),
]
NO_SERVER: list[tuple[list[str], str]] = [
    (
        ["chat", "llama", "hello"],
        "dynamoctl: no server given: use --server https://HOST or $DYNAMO_SERVER_URL, or run this",
    ),
    (["logs", "llama"], "where dynamoctl up or demo runs\n"),
    (
        ["deploy", "llama", "--model", "m", "--backend", "vllm"],
        "where dynamoctl up or demo runs; --dry-run client needs no server\n",
    ),
    (["events"], "dynamoctl: no NATS server given: use --nats URL or --config FILE, or run this"),
    (["scale", "llama", "Decode=1"], "dynamoctl: no NATS server given"),
    (["get"], "or run in a pod with a service account; or run this where dynamoctl up or demo runs\n"),
]


@pytest.mark.parametrize(
    ("code", "arguments", "said"),
    [*((ExitCode.USAGE, *row) for row in WRONG), *((ExitCode.UNREACHABLE, *row) for row in NO_SERVER)],
)
def test_a_usage_error_and_an_unknown_server_are_one_line_each(
    code: ExitCode, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.invoke(arguments) == code
    captured = capsys.readouterr()
    assert said in captured.err
    assert captured.err.count("\n") == 1
    assert not captured.out


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["logs", "llama"], ExitCode.INTERRUPTED),
        (["logs", "llama", "--follow"], ExitCode.OK),
        (["events", "--name", "llama"], ExitCode.INTERRUPTED),
        (["events", "--name", "llama", "--follow"], ExitCode.OK),
        (["get"], ExitCode.INTERRUPTED),
        (["get", "--watch"], ExitCode.OK),
    ],
)
def test_ctrl_c_ends_a_command_that_follows_with_success(
    arguments: list[str], code: ExitCode, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(work: Coroutine[object, object, object]) -> None:
        work.close()
        raise KeyboardInterrupt

    monkeypatch.setattr(interrupts, "run", interrupted)
    assert cli.invoke([*arguments, "--server", "http://127.0.0.1:8082"]) == code


def test_flags_of_earlier_operators_set_todays_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[Settings] = []
    monkeypatch.setattr(serving, "serve", lambda _, settings: started.append(settings))
    monkeypatch.setattr(interrupts, "serve", lambda _: None)
    monkeypatch.setattr(ctl_settings, "start_logging", lambda *_, **__: None)
    cli.invoke(["run", "watcher", "--natsAddr=nats://n:4222", "--etcdAddr", "http://e:2379"])
    cli.invoke(["run", "watcher", "--natsAddr="])
    given, empty = started
    assert (given.infrastructure.nats_address, given.infrastructure.etcd_address) == ("nats://n:4222", "http://e:2379")
    assert [each.partition(" ")[0] for each in given.older_names] == ["--natsAddr", "--etcdAddr"]
    assert (empty.infrastructure.nats_address, empty.older_names) == ("", ())


def test_without_arguments_the_help_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.invoke([]) == ExitCode.USAGE
    assert "Usage: dynamoctl" in capsys.readouterr().out


def test_the_option_version_prints_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.invoke(["--version"]) == ExitCode.OK
    assert capsys.readouterr().out.startswith("dynamoctl 0.")


def test_with_debug_an_error_has_a_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(cli.DEBUG, "1")
    with pytest.raises(CtlError, match="cannot be read"):
        cli.invoke(["render", "no-such-file"])


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (CtlError("no", ExitCode.NOT_READY), ExitCode.NOT_READY, "no"),
        (ConfigError("no cluster: give --kubeconfig"), ExitCode.UNREACHABLE, "no cluster: give --kubeconfig"),
        (BusUnavailableError("no answer"), ExitCode.UNREACHABLE, "no answer"),
        (EtcdUnavailableError("late"), ExitCode.UNREACHABLE, "etcd does not answer: late; check that it is running"),
        (
            Unavailable(0, "ConnectionFailed", "refused"),
            ExitCode.UNREACHABLE,
            "check that it is running, and --kubeconfig",
        ),
        (Forbidden(403, "Forbidden", "not you"), ExitCode.FAILED, "the cluster refuses"),
        (Invalid(422, "Invalid", "bad"), ExitCode.FAILED, "422 Invalid: bad"),
        (InvalidSettings("f.yaml", ["a: wrong", "b: wrong"]), ExitCode.FAILED, "f.yaml: a: wrong\nf.yaml: b: wrong"),
        (
            OSError(98, "error while attempting to bind on address ('0.0.0.0', 8081)"),
            ExitCode.FAILED,
            "('0.0.0.0', 8081): stop the process that uses this port, or configure another port",
        ),
        (PermissionError(13, "Permission denied", "/proc/x"), ExitCode.FAILED, "/proc/x: Permission denied"),
        (ZeroDivisionError("division\nby zero"), ExitCode.INTERNAL, "ZeroDivisionError: division by zero; --debug"),
        (ExceptionGroup("several", [CtlError("first"), CtlError("second")]), ExitCode.FAILED, "first"),
    ],
)
def test_every_error_has_a_code_and_says_what_to_do(error: Exception, code: ExitCode, said: str) -> None:
    result, text = explain(error)
    assert result == code
    assert said in text
    assert "[Errno" not in text


def test_without_the_planner_its_commands_say_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services, "find_spec", lambda name: None if name == "dynamo_planner" else object())
    assert "planner" not in [each.name for each in services.make()]
    with pytest.raises(CtlError, match="not installed: dynamo-planner"):
        services.make(["planner"])
    code, text = explain(ModuleNotFoundError("No module", name="dynamo_planner.replay"))
    assert (code, "dynamo-ctl[planner]" in text) == (ExitCode.FAILED, True)


def test_a_local_server_that_cannot_start_is_an_error_of_one_line_with_code_3(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    async def fail(*_: object, **__: object) -> None:
        raise LocalClusterError("kwok is not available")

    monkeypatch.setattr(platform, "up", fail)
    monkeypatch.setattr(demo, "demo", fail)
    for arguments in (["up", "--local"], ["demo", str(EXAMPLE)]):
        assert cli.invoke([*arguments, "--dir", str(tmp_path)]) == ExitCode.UNREACHABLE
        assert capsys.readouterr().err == "dynamoctl: kwok is not available\n"


def test_up_looks_for_the_cluster_before_it_obtains_servers(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def obtained(*_: object) -> None:
        pytest.fail("servers were obtained, which may take minutes")

    async def silent(*_: object) -> None:
        raise Unavailable(0, "Unreachable", "no answer")

    monkeypatch.setattr(platform, "embedded", obtained)
    monkeypatch.setattr(platform, "install_definitions", silent)
    kubeconfig = tmp_path / "kubeconfig"
    for content, said in (("", "kubeconfig does not exist: "), (KUBECONFIG, "the cluster does not answer: ")):
        if content:
            kubeconfig.write_text(content)
        assert cli.invoke(["up", "--dir", str(tmp_path), "--kubeconfig", str(kubeconfig)]) == ExitCode.UNREACHABLE
        assert capsys.readouterr().err.startswith(f"dynamoctl: {said}")


INTERRUPTED = """
import sys

class Interrupt:
    def find_spec(self, name, *_):
        if name == "typer":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupt())
from dynamo_ctl.__main__ import main
main()
"""


def test_ctrl_c_while_the_program_loads_leaves_no_traceback() -> None:
    ended = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, timeout=60, check=False)
    assert (ended.returncode, ended.stderr) == (ExitCode.INTERRUPTED, b"")


#: dynamoctl where the package of the local cluster is not installed.
WITHOUT_DEVCLUSTER = "import sys; sys.modules['dynamo_devcluster'] = None; from dynamo_ctl.cli import main; main()"


@pytest.mark.parametrize("command", ["up", "demo"])
def test_without_the_local_cluster_a_command_that_starts_one_says_how_to_install_it(
    command: str, tmp_path: Path
) -> None:
    def called(*arguments: str) -> subprocess.CompletedProcess[str]:
        program = [sys.executable, "-c", WITHOUT_DEVCLUSTER, command, *arguments]
        return subprocess.run(program, capture_output=True, text=True, check=False, timeout=60, cwd=tmp_path)

    refused = called()
    assert refused.returncode == ExitCode.FAILED
    assert refused.stderr == (
        "dynamoctl: this command needs the local servers, which are not installed: pip install dynamo-ctl[devcluster]\n"
    )
    assert f"Usage: dynamoctl {command}" in called("--help").stdout


def test_a_reader_may_close_the_output_early() -> None:
    program = [sys.executable, "-m", "dynamo_ctl", "render", str(EXAMPLE)]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as rendering:
        assert rendering.stdout is not None
        assert rendering.stderr is not None
        rendering.stdout.close()
        assert rendering.stderr.read() == b""
        assert rendering.wait(timeout=60) == ExitCode.OK


@pytest.mark.parametrize("closed", [">&-", "<&- >&- 2>&-"])
def test_a_caller_without_standard_streams_gets_the_exit_code(closed: str, tmp_path: Path) -> None:
    """Sockets got the numbers of these streams, and the event loop ended the process with an assertion."""
    kubeconfig = tmp_path / "config"
    kubeconfig.write_text(
        "{contexts: [{name: a, context: {cluster: a}}], current-context: a, clusters: [{name: a, cluster: {server: "
        "'http://127.0.0.1:1'}}]}"
    )
    command = f'exec "$@" {closed}'
    program = [sys.executable, "-m", "dynamo_ctl", "get", f"--kubeconfig={kubeconfig}"]
    done = subprocess.run(["/bin/sh", "-c", command, "sh", *program], check=False, timeout=60)
    assert done.returncode == ExitCode.UNREACHABLE


def test_output_is_utf_8_in_every_locale(tmp_path: Path) -> None:
    """Output may have characters that the terminal's encoding lacks: the command ended with an internal error."""
    manifest = tmp_path / "graph.yaml"
    manifest.write_text(
        "apiVersion: nvidia.com/v1beta1\nkind: DynamoGraphDeployment\nmetadata: {name: g, annotations: {team: Łódź}}\nspec: {}\n",
        encoding="utf-8",
    )
    program = [sys.executable, "-m", "dynamo_ctl", "convert", "--to", "v1alpha1", str(manifest)]
    environment = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    done = subprocess.run(program, env=environment, capture_output=True, check=False, timeout=60)
    assert (done.returncode, "team: Łódź".encode() in done.stdout) == (0, True), done.stderr
