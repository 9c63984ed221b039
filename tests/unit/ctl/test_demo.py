import asyncio
import io
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock, Mock

import pytest
from dynamo_ctl.commands.demo import run, tree
from dynamo_ctl.commands.demo.local import is_ready
from dynamo_ctl.commands.demo.run import find_manifests
from dynamo_ctl.commands.demo.view import in_lines, showing, table
from dynamo_ctl.commands.demo.waiting import FAILED_FOR, GraphProgress, until_successful
from dynamo_ctl.commands.up.progress import BarProgress
from dynamo_ctl.errors import CtlError, ExitCode
from dynamo_ctl.summary import GraphLine
from dynamo_devcluster.probe import LocalHttp
from dynamo_devcluster.progress import step
from dynamo_shared.api.resources import DEPLOYMENTS, DYNAMO_GRAPH_DEPLOYMENTS, LEADER_WORKER_SETS, PODS, Resource
from dynamo_shared.kube import KubeClient, NotServed
from dynamo_shared.runtime.health import Health, HealthState
from rich.console import Console
from rich.progress import Progress

from tests.building.memory_kube import MemoryKube
from tests.unit.ctl.command_line import Dynamoctl, written

EXAMPLE = Path(__file__).parents[3] / "examples" / "vllm-agg.yaml"


def graph(name: str, state: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "generation": 1}, "status": {"state": state, "observedGeneration": 1}}


def line(name: str, state: str, ready: int, message: str = "") -> GraphLine:
    return GraphLine(name, "vllm", state, f"{ready}/3", "", message)


def test_ages_stop_at_success() -> None:
    progress = GraphProgress(["a", "b"])
    progress.observe([graph("a", "pending")], 1.0)
    progress.observe([graph("a", "successful"), graph("b", "pending")], 3.0)
    progress.observe([graph("a", "successful"), graph("b", "pending"), graph("stranger", "failed")], 5.0)
    assert progress.ages(5.0) == {"a": 2.0, "b": 2.0}
    assert not progress.complete
    assert [each["metadata"]["name"] for each in progress.late] == ["b"]
    progress.observe([graph("a", "pending"), graph("b", "successful")], 6.0)
    assert progress.complete, "a graph that was up once has arrived"


def test_waiting_ends_early_only_if_all_other_graphs_have_failed_for_long() -> None:
    progress = GraphProgress(["a", "b"])
    progress.observe([graph("a", "failed")], 0.0)
    assert not progress.has_failed(FAILED_FOR + 1), "b is not even there"
    progress.observe([graph("a", "failed"), graph("b", "successful")], 5.0)
    assert not progress.has_failed(FAILED_FOR)
    assert progress.has_failed(FAILED_FOR + 1)
    progress.observe([graph("a", "pending"), graph("b", "successful")], FAILED_FOR + 2)
    progress.observe([graph("a", "failed"), graph("b", "successful")], FAILED_FOR + 3)
    assert not progress.has_failed(FAILED_FOR + 4), "it had recovered in between"


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_message_is_not_read_as_markup(is_terminal: bool) -> None:
    out = io.StringIO()
    console = Console(file=out, width=200, force_terminal=is_terminal, color_system=None)
    with showing(console) as show:
        show([line("a", "failed", 0, "containers[main].image is required")], {})
    assert "containers[main].image is required" in out.getvalue()


def test_lines_are_printed_on_change_only() -> None:
    printed: list[object] = []
    show = in_lines(printed.append)
    show([line("a", "pending", 0, "waiting")], {"a": 0.1})
    show([line("a", "pending", 0, "waiting still")], {"a": 0.2})
    show([line("a", "successful", 3)], {"a": 1.0})
    assert printed == [
        "a (vllm) pending after 0.1 s, components 0/3: waiting",
        "a (vllm) successful after 1.0 s, components 3/3",
    ]


def test_on_a_narrow_terminal_only_the_message_is_shortened() -> None:
    console = Console(width=80, file=io.StringIO(), force_terminal=False)
    console.print(table([line("a-rather-long-name", "successful", 3, "m" * 500)], {"a-rather-long-name": 1.0}))
    printed = console.file.getvalue()  # type: ignore[attr-defined]
    assert "a-rather-long-name" in printed
    assert "successful" in printed
    assert max(map(len, printed.splitlines())) <= 80


def test_the_tree_shows_objects_below_their_owners() -> None:
    def obj(kind: str, name: str, owner: str = "", **rest: Any) -> dict[str, Any]:
        owners = [{"uid": owner, "controller": True}] if owner else []
        return {"kind": kind, "metadata": {"name": name, "uid": f"uid-{name}", "ownerReferences": owners}, **rest}

    graph_ = obj("DynamoGraphDeployment", "g", status={"state": "successful"})
    objects = [
        obj("DynamoComponentDeployment", "g-a", "uid-g", spec={"replicas": 1}),
        obj("Deployment", "g-a-d", "uid-g-a", spec={"replicas": 1}, status={"readyReplicas": 1}),
        obj("ReplicaSet", "g-a-rs", "uid-g-a-d"),
        obj("Pod", "g-a-pod", "uid-g-a-rs", spec={"nodeName": "node"}, status={"phase": "Running"}),
        obj("DynamoComponentDeployment", "g-b", "uid-g", spec={"replicas": 1}),
        obj("LeaderWorkerSet", "g-b-w", "uid-g-b", spec={"replicas": 1}, status={"readyReplicas": 1}),
        obj("StatefulSet", "g-b-w-s", "uid-g-b-w"),
        obj("Pod", "g-b-w-0", "uid-g-b-w-s", spec={"nodeName": "node"}, status={"phase": "Running"}),
        obj("StatefulSet", "g-b-w-0-s", "uid-g-b-w-0"),
        obj("Pod", "g-b-w-0-1", "uid-g-b-w-0-s", spec={}, status={"phase": "Pending"}),
        obj("Pod", "stranger", spec={}),
    ]
    console = Console(width=200, file=io.StringIO(), force_terminal=False)
    console.print(tree.grow("n", [graph_], objects))
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert [each.strip("│├└─ ") for each in lines] == [
        "namespace n",
        "DynamoGraphDeployment/g  successful",
        "DynamoComponentDeployment/g-a  0/1 ready",
        "Deployment/g-a-d  1/1",
        "Pod/g-a-pod  Running on node",
        "DynamoComponentDeployment/g-b  0/1 ready",
        "LeaderWorkerSet/g-b-w  1/1",
        "Pod/g-b-w-0  Running on node",
        "Pod/g-b-w-0-1  Pending on no node",
    ]


class ServesAllBut:
    def __init__(self, missing: Resource) -> None:
        self._missing = missing

    async def list(self, resource: Resource, _namespace: str) -> list[dict[str, Any]]:
        if resource == self._missing:
            raise NotServed(404, "NotFound", "the server could not find the requested resource")
        metadata = {"name": "g", "uid": "u"}
        return [{"kind": resource.kind, "metadata": metadata}] if resource == DYNAMO_GRAPH_DEPLOYMENTS else []


async def test_the_tree_omits_kinds_that_a_cluster_may_lack() -> None:
    grown = await tree.read(ServesAllBut(LEADER_WORKER_SETS), "n")  # type: ignore[arg-type]
    assert [str(each.label).split()[0] for each in grown.children] == ["DynamoGraphDeployment/g"]


@pytest.mark.parametrize("resource", [DYNAMO_GRAPH_DEPLOYMENTS, DEPLOYMENTS, PODS], ids=str)
async def test_the_tree_requires_all_other_kinds(resource: Resource) -> None:
    with pytest.raises(NotServed):
        await tree.read(ServesAllBut(resource), "n")  # type: ignore[arg-type]


def test_the_examples_are_deployed_if_no_manifests_are_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "vllm-agg.yaml" in {file.name for file in find_manifests([])}
    with pytest.raises(CtlError, match=r"has no \.yaml"):
        find_manifests([tmp_path])
    (tmp_path / "examples").mkdir()
    (tmp_path / "examples" / "mine.yaml").touch()
    assert find_manifests([]) == [Path("examples/mine.yaml")]


def test_a_demo_that_stays_says_how_to_reach_it() -> None:
    out = io.StringIO()
    console = Console(file=out, width=40)
    run._further(console, "/d/kubeconfig", "nats://127.0.0.1:5", Path("/d/nats"))
    run._page(console, 8082, Path("/d/page-token"))
    lines = out.getvalue().splitlines()
    assert "  export KUBECONFIG=/d/kubeconfig" in lines
    assert (
        '  nats --server nats://127.0.0.1:5 --user integrator --password "$(cat /d/nats/integrator)" '
        "--inbox-prefix _INBOX_integrator subscribe 'dynamo.evt.v1.demo.>'"
    ) in lines
    assert "Deploy a model in the browser: http://localhost:8082/" in lines
    assert "  sign in with the token that this prints: cat /d/page-token" in lines


def test_the_bar_of_a_failed_step_is_removed() -> None:
    """It moved on, next to the bar of the step that replaced it."""
    bars = Progress(console=Console(file=io.StringIO()))
    steps = BarProgress(bars)
    with suppress(OSError), step(steps, "downloading etcd"):
        steps.advanced("downloading etcd", 1, 2, "MiB")
        raise OSError("no network")
    assert not bars.tasks


async def test_a_demo_does_not_delete_unrelated_files(tmp_path: Path) -> None:
    """`--dir .` next to a folder `demo` deleted the content of this folder."""
    (state := tmp_path / run.CLUSTER).mkdir()
    (state / "mine.py").write_text("mine")
    with pytest.raises(CtlError, match=r"demo has files that dynamoctl demo did not create; move them"):
        await run.demo([EXAMPLE], tmp_path, 1.0, Console(file=io.StringIO()), leave=True)
    assert [each.name for each in state.iterdir()] == ["mine.py"]


@pytest.mark.parametrize("left", [run.MARKER, "kubernetes/pki/ca.crt", None])
def test_a_demo_deletes_the_files_of_an_earlier_demo(tmp_path: Path, left: str | None) -> None:
    """Also the files of a release that did not write a marker."""
    state = tmp_path / run.CLUSTER
    if left is not None:
        (state / left).parent.mkdir(parents=True)
        for each in (left, "platform.log"):
            (state / each).write_text("x")
    run.empty(state)
    assert [each.name for each in state.iterdir()] == [run.MARKER]


async def test_a_platform_that_is_not_ready_names_its_failed_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    health = Health()

    async def answered(*_: object, **__: object) -> tuple[int, bytes]:
        return 200 if health.ready else 503, json.dumps(health.report()).encode()

    monkeypatch.setattr(LocalHttp, "request", answered)
    health.expect("watcher")
    health.set("scaler", HealthState.DEGRADED, "no etcd")
    with pytest.raises(OSError, match=r"^watcher: starting$"):
        await is_ready(LocalHttp(1))
    health.set("watcher", HealthState.OK)
    assert await is_ready(LocalHttp(1))


async def test_late_graphs_have_a_separate_exit_code() -> None:
    waiting = asyncio.create_task(asyncio.sleep(0))
    kube: Any = MemoryKube({**DYNAMO_GRAPH_DEPLOYMENTS.type_meta, **graph("a", "failed")})
    with pytest.raises(CtlError, match="a is failed") as late:
        await until_successful(kube, "", ["a"], lambda *_: None, timeout=-1, applying=waiting)
    assert late.value.code is ExitCode.NOT_READY


async def test_a_demo_of_a_request_waits_until_the_request_exists() -> None:
    """It was successful at once, and did not report that admission refused the request."""

    async def refused() -> None:
        await asyncio.sleep(0)
        raise CtlError("refused")

    kube: Any = MemoryKube()
    with pytest.raises(CtlError, match="refused"):
        await until_successful(kube, "", [], lambda *_: None, timeout=9, applying=asyncio.create_task(refused()))


def test_a_demo_with_late_graphs_ends_with_this_exit_code(
    tmp_path: Path, dynamoctl: Dynamoctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A script must be able to distinguish this from a refusal and from success."""

    @asynccontextmanager
    async def nothing(*_: Any, **__: Any) -> AsyncIterator[Any]:
        yield SimpleNamespace(
            platform=SimpleNamespace(kubernetes=Mock(), nats=Mock(servers=["nats"])), create=AsyncMock()
        )

    async def late(*_: Any, **__: Any) -> None:
        raise CtlError("a is failed", ExitCode.NOT_READY)

    for name, instead in (("local_platform", nothing), ("until_successful", late), ("give_roles", AsyncMock())):
        monkeypatch.setattr(run, name, instead)
    steps: list[str] = []

    @contextmanager
    def announced(*_: Any) -> Iterator[None]:
        steps.append("announced")
        yield

    monkeypatch.setattr(run, "running_here", Mock())
    monkeypatch.setattr(run, "page_token", AsyncMock(side_effect=lambda *_: steps.append("token")))
    monkeypatch.setattr(run, "announced", announced)
    monkeypatch.setattr(KubeClient, "open", AsyncMock(side_effect=nothing))
    file = written(tmp_path, EXAMPLE.read_text())
    ran = dynamoctl("demo", file, "--dir", tmp_path / "state")
    assert (ran.code, "logs are in" in ran.err) == (ExitCode.NOT_READY, True)
    assert steps == ["token", "announced"], "commands that find the platform read its token"


GRAPH = EXAMPLE.read_text()


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        # It started a cluster, and then reported that all of its zero graphs are successful.
        (
            "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\n",
            "no DynamoGraphDeployment: the demo shows how graphs start",
        ),
        # Both ended after the cluster had started: with an internal error, and after two minutes without a reason.
        (
            f"{GRAPH}\n---\napiVersion: my.org/v1\nkind: Mine\nmetadata: {{name: x}}\n",
            "my.org/v1 Mine: the demo does not know this kind; apply it with kubectl",
        ),
        (f"{GRAPH}\n---\n{GRAPH}", "DynamoGraphDeployment vllm-agg: in several manifests; give each its own name"),
    ],
)
def test_manifests_that_a_demo_cannot_show_are_refused_at_once(
    text: str, refusal: str, dynamoctl: Dynamoctl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "claimed", Mock(side_effect=AssertionError("nothing may start")))
    ran = dynamoctl("demo", "--exit", "--dir", tmp_path / "new", written(tmp_path, text))
    assert ran.code == ExitCode.FAILED
    assert ran.err.endswith(f"{refusal}\n"), ran.err
    assert ran.err.count("\n") == 1
    assert not (tmp_path / "new").exists()
