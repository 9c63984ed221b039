"""dynamoctl against real servers: its output, the processes that it starts, and how it ends."""

import asyncio
import json
import signal
from pathlib import Path

import pytest
from dynamo_ctl.commands.events import EventQuery, stream
from dynamo_ctl.commands.get import ObjectQuery, objects, sources
from dynamo_ctl.commands.parameters import Output
from dynamo_ctl.errors import CtlError, ExitCode
from dynamo_ctl.nats_targets import NatsTarget
from dynamo_ctl.page_account import NAME, page_token
from dynamo_devcluster.controlplane import ControlPlane
from dynamo_devcluster.programs import Programs
from dynamo_devcluster.servers import NatsServer
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENTS, ROLES, VALIDATING_WEBHOOK_CONFIGURATIONS, ObjectKey
from dynamo_shared.bus.nats import NatsOptions
from dynamo_shared.kube import KubeClient

from tests.building.tasks import in_background
from tests.building.waiting import until

from . import platform as harness
from .command import WITHIN, called, dynamoctl, finished, printed

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.yaml"))
#: Admission accepts it, because the pod is valid. A Deployment requires other fields.
BROKEN = """
apiVersion: nvidia.com/v1beta1
kind: DynamoGraphDeployment
metadata: {name: broken}
spec:
  backendFramework: vllm
  components:
    - name: Worker
      type: worker
      multinode: {nodeCount: 2}
      podTemplate: {spec: {containers: [{name: main, image: engine, resources: {limits: {nvidia.com/gpu: 1}}}]}}
"""


def left_over(folder: Path) -> list[str]:
    """Command lines of processes whose working directory is a folder."""
    results = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = each.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if str(folder) in command:
            results.append(command)
    return results


async def test_kubectl_accepts_what_is_rendered(
    programs: Programs, control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    kubectl = await programs.obtain("kubectl")
    code, text, _ = await called("render", *map(str, EXAMPLES), "-n", namespace, cwd=tmp_path)
    assert code == ExitCode.OK
    process = await asyncio.create_subprocess_exec(
        kubectl, f"--kubeconfig={control_plane.kubeconfig}", "apply", "--dry-run=server", "--filename=-",
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    out, _ = await asyncio.wait_for(process.communicate(text.encode()), WITHIN)
    assert process.returncode == 0, out.decode()
    assert out.decode().count("(server dry run)") == text.count("\n---\n")


async def test_get_and_events_show_a_graph(
    control_plane: ControlPlane, kube: KubeClient, nats_server: NatsServer, namespace: str
) -> None:
    settings = harness.settings(control_plane.kubeconfig, nats_server.url, PLATFORM__KUBERNETES__NAMESPACES=namespace)
    source = sources.OfCluster(kube)
    server = NatsTarget(NatsOptions(servers=(nats_server.url,)), settings.platform.cluster_name)
    heard: list[str] = []
    async with harness.platform(settings):
        watched: list[str] = []
        query = EventQuery(name="chat", follow=True)
        async with (
            in_background(stream.listen(query, server, heard.append, as_json=True)),
            in_background(objects.watch(ObjectQuery("dgd", namespace=namespace), source, watched.append)),
        ):
            await kube.create(DYNAMO_GRAPH_DEPLOYMENTS, harness.graph(namespace, "chat"))
            await until(lambda: any(json.loads(each)["type"].endswith("deployment.ready.v1") for each in heard))
            await until(lambda: any("successful" in line for line in watched))
            lines: list[str] = []
            await objects.show(ObjectQuery(namespace=namespace), source, lines.append)
            assert lines[0].split() == ["NAME", "BACKEND", "STATE", "READY", "AGE", "MESSAGE"]
            assert lines[1].split()[:4] == ["chat", "vllm", "successful", "3/3"]
            assert len([line for line in lines if line.startswith("chat-")]) == 3
            out: list[str] = []
            await objects.show(ObjectQuery("dgd", "chat", namespace, output=Output.JSON), source, out.append)
            assert json.loads(out[0])["status"]["state"] == "successful"
            stored: list[str] = []
            await stream.listen(EventQuery(namespace=namespace, types=["ready"]), server, stored.append)
            assert [f"{namespace}/chat" in line for line in stored] == [True]
            remarks: list[str] = []
            await stream.listen(EventQuery(namespace="elsewhere"), server, stored.append, remark=remarks.append)
            assert len(stored) == 1
            place = "in namespace elsewhere (-A: in all)"
            assert remarks == [
                f"no stored event of cluster {server.cluster} matches {place}; events are kept for a week"
            ]
            with pytest.raises(CtlError, match="no dgd 'other'"):
                await objects.show(ObjectQuery("dgd", "other", namespace), source, out.append)
            await kube.delete(DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey(namespace, "chat"))
            await until(lambda: any("deleted" in line for line in watched))
            await until(lambda: any(json.loads(each)["type"].endswith("deployment.deleted.v1") for each in heard))
    assert watched[0].split() == ["NAME", "BACKEND", "STATE", "READY", "AGE", "MESSAGE"]


async def test_missing_streams_of_events_are_reported(nats_server: NatsServer) -> None:
    empty = NatsTarget(NatsOptions(servers=(nats_server.url,)), "local")
    with pytest.raises(CtlError, match="the platform has never run there"):
        await stream.listen(EventQuery(), empty, print)


async def test_the_demo_succeeds_and_leaves_no_process(tmp_path: Path) -> None:
    async with dynamoctl("demo", "--exit", *map(str, EXAMPLES[:2]), cwd=tmp_path) as demo:
        code, out, err = await finished(demo)
    assert code == ExitCode.OK, err
    assert "2 graphs are successful" in out
    for file in EXAMPLES[:2]:
        assert f"DynamoGraphDeployment/{file.stem}  successful" in out
    # The next steps must not mention servers that have ended by now.
    assert "export KUBECONFIG" not in out
    assert not left_over(tmp_path)
    assert not (tmp_path / ".dynamo").exists()


@pytest.mark.long
async def test_a_failed_demo_says_why(tmp_path: Path) -> None:
    manifest = tmp_path / "broken.yaml"
    manifest.write_text(BROKEN)
    async with dynamoctl("demo", "--exit", "--timeout", "8", str(manifest), cwd=tmp_path) as demo:
        code, _, err = await finished(demo)
    assert code == ExitCode.NOT_READY
    assert "broken is failed" in err
    assert "install LeaderWorkerSet or Grove" in err
    assert "logs are in" in err
    assert not left_over(tmp_path)


async def test_up_runs_everything_until_it_is_interrupted(tmp_path: Path) -> None:
    async with dynamoctl("up", "--local", cwd=tmp_path) as up:
        await printed(up, "Dynamo Platform is up")
        await printed(up, "sign in   with the token that this prints: cat ")
        note = json.loads((tmp_path / ".dynamo" / "platform.json").read_text())
        assert note["pid"] == up.pid
        code, out, err = await called("get", cwd=tmp_path)
        assert (code, out, err) == (ExitCode.OK, "", "nothing in namespace default; -A shows all\n")
        code, out, err = await called("events", cwd=tmp_path)
        assert (code, out, err[:3]) == (ExitCode.OK, "", "no "), err
        code, _, err = await called("logs", "chat", cwd=tmp_path, DYNAMO_SERVER_URL="", DYNAMO_TOKEN="")
        assert (code, '"chat" not found' in err) == (ExitCode.FAILED, True), err
        code, _, err = await called("up", "--local", cwd=tmp_path)
        assert code == ExitCode.FAILED
        assert "a platform already runs in this folder" in err
        up.send_signal(signal.SIGINT)
        code, _, err = await finished(up)
    assert code == ExitCode.OK, err
    assert not left_over(tmp_path)
    assert not (tmp_path / ".dynamo" / "platform.json").exists()


async def test_rights_of_an_earlier_release_are_replaced(kube: KubeClient, namespace: str, tmp_path: Path) -> None:
    head = {**ROLES.type_meta}
    rules = [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]
    await kube.create(ROLES, {**head, "metadata": {"name": NAME, "namespace": namespace}, "rules": rules})
    for _ in range(2):
        token = await page_token(kube, namespace, tmp_path)
    assert token.read_text().strip()
    role = await kube.get(ROLES, ObjectKey(namespace, NAME))
    covered = {each for rule in role["rules"] for each in rule["resources"]}
    assert "pods" in covered
    assert "secrets" not in covered


async def test_up_against_a_cluster_starts_only_what_is_missing(
    control_plane: ControlPlane, kube: KubeClient, nats_server: NatsServer, namespace: str, tmp_path: Path
) -> None:
    environ = {"DYNAMO_PLATFORM__NATS__SERVERS": nats_server.url, "DYNAMO_PLATFORM__KUBERNETES__NAMESPACES": namespace}
    async with dynamoctl("up", f"--kubeconfig={control_plane.kubeconfig}", cwd=tmp_path, **environ) as up:
        await printed(up, nats_server.url)
        assert not (tmp_path / ".dynamo" / "nats").exists()
        assert (tmp_path / ".dynamo" / "etcd").exists()
        await kube.create(DYNAMO_GRAPH_DEPLOYMENTS, harness.graph(namespace))
        await harness.until_state(kube, ObjectKey(namespace, "disagg"), "successful")
        up.send_signal(signal.SIGTERM)
        code, _, err = await finished(up)
    assert code == ExitCode.OK, err
    assert await kube.get(DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey(namespace, "disagg")), "stopping undoes nothing"
    assert not await kube.list(VALIDATING_WEBHOOK_CONFIGURATIONS), "no one would answer"
    await kube.delete(DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey(namespace, "disagg"))
