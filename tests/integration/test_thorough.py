"""Thorough profiling: the Job on a real API server, and its relay as a real process with the Job's ServiceAccount."""

import asyncio
import base64
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml
from dynamo_profiler.profiling.results import ProfilingRequest, ProfilingResult
from dynamo_profiler.requests.thorough import names
from dynamo_shared.api.resources import CONFIG_MAPS, JOBS, NAMESPACES, ObjectKey, Resource
from dynamo_shared.kube import KubeClient

from tests.building.processes import ending

from .platform import eventually
from .test_requests import ControlledProfiler, candidate, conditions, create, planning, request, status_of, until_phase

#: No node has this label: the Job's pod waits, and the test acts as the profiler.
NOWHERE = {"profilingJob": {"template": {"spec": {"nodeSelector": {"no-such": "node"}}}}}
RESULT = "kind: DynamoGraphDeployment\n"
QUOTAS = Resource("", "v1", "resourcequotas", "ResourceQuota")


def read(asked: ProfilingRequest, data: Mapping[str, str]) -> ProfilingResult:
    assert data["final_config.yaml"] == RESULT
    best = candidate(asked)
    return ProfilingResult(selected=best, pareto=(best,), source="thorough")


@asynccontextmanager
async def relaying(
    kubeconfig: Path, kubectl: Path, kube: KubeClient, namespace: str, folder: Path
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run the relay of a request's Job as the kubelet would: with its command, variables and account."""
    job = await kube.get(JOBS, ObjectKey(namespace, "profile-qwen"))
    (relay,) = job["spec"]["template"]["spec"]["initContainers"]
    account = folder / "account"
    server = urlsplit(mount_account(kubeconfig, account, await _token(kubeconfig, kubectl, namespace)))
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *relay["command"][1:],
        env={
            **{each["name"]: each["value"] for each in relay["env"]},
            "KUBERNETES_SERVICE_HOST": server.hostname or "",
            "KUBERNETES_SERVICE_PORT": str(server.port),
            "RELAY_ACCOUNT_DIR": str(account),
            "RELAY_OUTPUT_DIR": str(folder),
            "RELAY_POLL_SECONDS": "0.1",
        },
    )
    async with ending(process):
        yield process


async def _token(kubeconfig: Path, kubectl: Path, namespace: str) -> str:
    command = ("--kubeconfig", str(kubeconfig), "-n", namespace, "create", "token", names.SERVICE_ACCOUNT)
    process = await asyncio.create_subprocess_exec(str(kubectl), *command, stdout=asyncio.subprocess.PIPE)
    out, _ = await process.communicate()
    assert process.returncode == 0
    return out.decode().strip()


def mount_account(kubeconfig: Path, folder: Path, token: str) -> str:
    """Write the files of an account as the kubelet mounts them; returns the address of the API server."""
    cluster = yaml.safe_load(kubeconfig.read_text())["clusters"][0]["cluster"]
    authority = cluster.get("certificate-authority-data")
    content = base64.b64decode(authority) if authority else Path(cluster["certificate-authority"]).read_bytes()
    folder.mkdir()
    (folder / "ca.crt").write_bytes(content)
    (folder / "token").write_text(token)
    return str(cluster["server"])


def profiler_reports(folder: Path, **fields: str) -> None:
    text = "".join(f'{name}: "{value}"\n' for name, value in fields.items())
    (folder / "profiler_status.yaml").write_text(text)


@pytest.fixture
async def measuring(  # noqa: PLR0917 - fixtures
    control_plane, programs, nats_server, kube, namespace, tmp_path
) -> AsyncIterator[asyncio.subprocess.Process]:
    """A request whose Job exists, and its relay."""
    async with planning(control_plane, nats_server, namespace, ControlledProfiler(), read):
        await create(kube, request(namespace, searchStrategy="thorough", overrides=NOWHERE, autoApply=False))
        status = await until_phase(kube, namespace, "Profiling")
        assert status["profilingJobName"] == "profile-qwen"
        kubectl = await programs.obtain("kubectl")
        async with relaying(control_plane.kubeconfig, kubectl, kube, namespace, tmp_path) as process:
            yield process


async def ends(process: asyncio.subprocess.Process) -> None:
    """The profiler has ended, so Kubernetes ends the sidecar."""
    process.send_signal(signal.SIGTERM)
    assert await process.wait() == 0


async def test_the_relay_reports_steps_and_the_result(measuring, kube, namespace, tmp_path):
    profiler_reports(tmp_path, phase="SweepingDecode", status="running", message="4 of 9 decode engines")
    await eventually(
        lambda: status_of(kube, namespace),
        "the profiler's step is in the status",
        where=lambda answer: answer.get("profilingPhase") == "SweepingDecode",
    )
    (tmp_path / "final_config.yaml").write_text(RESULT)
    profiler_reports(tmp_path, phase="Done", status="success", message="done")
    await ends(measuring)
    status = await until_phase(kube, namespace, "Ready")
    assert status["profilingResults"]["source"] == "thorough"
    assert conditions(status)["Profiling"] == ("True", "ProfilingCompleted")
    output = await kube.get(CONFIG_MAPS, ObjectKey(namespace, "dgdr-output-qwen"))
    assert output["metadata"]["ownerReferences"][0]["kind"] == "DynamoGraphDeploymentRequest"
    assert output["data"]["profiler_status"] == "success"


async def test_a_namespace_with_restricted_pod_security_admits_the_job(control_plane, nats_server, kube, namespace):
    level = {"pod-security.kubernetes.io/enforce": "restricted"}
    await kube.merge_patch(NAMESPACES, ObjectKey("", namespace), {"metadata": {"labels": level}})
    async with planning(control_plane, nats_server, namespace, ControlledProfiler(), read):
        await until_message(kube, namespace, "the profiling pod is not scheduled: ")


async def test_the_status_says_why_a_namespace_refuses_the_pod_of_the_job(control_plane, nats_server, kube, namespace):
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "few", "namespace": namespace}}
    await kube.create(QUOTAS, {**quota, "spec": {"hard": {"pods": "0"}}})
    async with planning(control_plane, nats_server, namespace, ControlledProfiler(), read):
        await until_message(kube, namespace, "the API server refuses the profiling pod: exceeded quota: few")


async def until_message(kube: KubeClient, namespace: str, words: str) -> None:
    """Wait until a new request's status says why the pod of its Job waits."""

    async def message() -> str:
        listed = (await status_of(kube, namespace)).get("conditions", ())
        return next((str(each["message"]) for each in listed if each["type"] == "Profiling"), "")

    await create(kube, request(namespace, searchStrategy="thorough", overrides=NOWHERE, autoApply=False))
    await eventually(message, words, where=lambda answer: words in answer)
