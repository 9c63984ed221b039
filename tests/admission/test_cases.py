"""A real API server rejects the invalid manifests of `cases/` in their exact words, and stores none of them.
tests/unit/admission/test_bad_manifests.py checks the words of all cases. `make test` sends the ones that need a server:
those that the API server itself rejects, and the first case of each kind, version, format, user and cluster. `make
test-long` sends all.
"""

import asyncio
import copy
from collections.abc import AsyncIterator
from typing import Any

import pytest
from dynamo_devcluster.controlplane import ControlPlane
from dynamo_shared.api.crds.build import definition_of
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import Resource
from dynamo_shared.kube import KubeClient

from tests.building.waiting import reached
from tests.integration.admission import admission_platform
from tests.integration.platform import eventually

from .case import CASES, Case, Cluster, load
from .cluster import ApiServer, delete_webhook_configurations, install_optional_kinds
from .conftest import NAMESPACE

LOADED = load()


def _way(case: Case) -> tuple[object, ...]:
    """How a refusal comes about, regardless of its words.

    Each case of the API server itself or the first cluster is unique.
    """
    kind, version = case.subject["kind"], case.subject["apiVersion"]
    own = "" if case.offline is None and case.cluster != "bare" else case.name
    return case.cluster, case.user, kind, version, case.before is None, case.scale is None, own


FIRST = {_way(case): case for case in reversed(LOADED)}
RESTRICTED = {"NAMESPACE__RESTRICTED": NAMESPACE, "GPU__DISCOVERY_ENABLED": "false"}
#: Accepted if the cluster serves everything.
PROBE: KubeObject = {
    "apiVersion": "nvidia.com/v1beta1",
    "kind": "DynamoGraphDeployment",
    "metadata": {"name": "probe"},
    "spec": {
        "topologyConstraint": {"clusterTopologyName": "rack-first", "packDomain": "rack"},
        "components": [
            {"name": "Picker", "type": "epp", "eppConfig": {"configMapRef": {"name": "picker", "key": "config.yaml"}}}
        ],
    },
}


class Clusters:
    """Runs the webhooks on one cluster after another, in the order of FACTS; each cluster adds to the previous one."""

    def __init__(self, control_plane: ControlPlane, kube: KubeClient, server: ApiServer) -> None:
        self._control_plane = control_plane
        self._kube = kube
        self._server = server
        self._present: Cluster | None = None
        self._stop = asyncio.Event()
        self._serving: asyncio.Task[None] | None = None

    async def become(self, expected: Cluster) -> None:
        """Return when the webhooks apply the rules for this cluster."""
        if expected == self._present:
            return
        await self.end()
        if expected != "bare":
            await install_optional_kinds(self._kube)
        self._stop = asyncio.Event()
        ready = asyncio.Event()
        self._serving = asyncio.create_task(self._serve(expected, ready, self._stop))
        await reached(ready, self._serving)
        if expected != "bare":
            await eventually(lambda: _accepts(self._server, PROBE), "the service knows what the cluster serves")
        self._present = expected

    async def end(self) -> None:
        """Stop the service and remove its webhooks from the API server."""
        if self._serving is not None:
            self._stop.set()
            await self._serving
            await delete_webhook_configurations(self._kube)
        self._serving, self._present = None, None

    async def _serve(self, expected: Cluster, ready: asyncio.Event, stop: asyncio.Event) -> None:
        extra: dict[str, Any] = RESTRICTED if expected == "restricted" else {}
        async with admission_platform(self._control_plane, **extra):
            ready.set()
            await stop.wait()


@pytest.fixture(scope="module")
async def clusters(control_plane: ControlPlane, kube: KubeClient, server: ApiServer) -> AsyncIterator[Clusters]:
    """Webhooks for the cluster that a case needs."""
    result = Clusters(control_plane, kube, server)
    yield result
    await result.end()


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in LOADED if FIRST[_way(case)] is case])
async def test_bad_manifest_is_refused_in_its_words(clusters: Clusters, case: Case, server: ApiServer) -> None:
    await _refused(clusters, case, server)


@pytest.mark.long
@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in LOADED if FIRST[_way(case)] is not case])
async def test_every_other_bad_manifest_is_refused_in_its_words(
    clusters: Clusters, case: Case, server: ApiServer
) -> None:
    await _refused(clusters, case, server)


async def _refused(clusters: Clusters, case: Case, server: ApiServer) -> None:
    await clusters.become(case.cluster)
    path = _path(case.subject)
    name = case.subject["metadata"].get("name", "")
    standing = await _stand(case, server) if case.before is not None else None
    try:
        status, answer = await _send(case, server, standing)
        assert _words(answer) == case.message
        assert 400 <= status < 500
        result, after = await server.ask("GET", f"{path}/{name}")
        if standing is None:
            assert result == 404 or not name
        else:
            assert (result, after["spec"]) == (200, standing["spec"])
    finally:
        if name:
            await server.ask("DELETE", f"{path}/{name}")


def test_there_are_enough_cases_and_no_duplicates() -> None:
    """No two cases check the same thing."""
    assert len(LOADED) >= 150
    assert len({path.stem for path in CASES.rglob("*.yaml")}) > 100
    sent = [(case.manifest, case.before, case.status, case.scale, case.user, case.cluster) for case in LOADED]
    assert [case.name for number, case in enumerate(LOADED) if sent[number] in sent[:number]] == []


async def _stand(case: Case, server: ApiServer) -> KubeObject:
    """Create the object to update, with the status that the platform would report."""
    before = _in_namespace(case.before or {})
    path, name = _path(before), before["metadata"]["name"]
    status, made = await server.ask("POST", path, before)
    assert status == 201, made.get("message")
    if case.status is not None:
        status, made = await server.ask("PUT", f"{path}/{name}/status", {**made, "status": case.status})
        assert status == 200, made.get("message")
    return made


async def _send(case: Case, server: ApiServer, standing: KubeObject | None) -> tuple[int, KubeObject]:
    path, name = _path(case.subject), case.subject["metadata"].get("name", "")
    if case.scale is not None:
        scale = {
            "apiVersion": "autoscaling/v1",
            "kind": "Scale",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {"replicas": case.scale},
        }
        return await server.ask("PUT", f"{path}/{name}/scale", scale, case.user)
    manifest = _in_namespace(case.manifest)
    if standing is None:
        return await server.ask("POST", path, manifest, case.user)
    # As kubectl does: keep the stored metadata, replace the spec.
    metadata = {**standing["metadata"], **manifest["metadata"]}
    return await server.ask("PUT", f"{path}/{name}", {**manifest, "metadata": metadata}, case.user)


async def _accepts(server: ApiServer, manifest: KubeObject) -> bool:
    status, _ = await server.ask("POST", f"{_path(manifest)}", _in_namespace(manifest))
    if status == 201:
        await server.ask("DELETE", f"{_path(manifest)}/{manifest['metadata']['name']}")
    return status == 201


def _words(answer: KubeObject) -> str:
    """The refusal without the API server's prefix."""
    message = str(answer.get("message", ""))
    prefix, separator, words = message.partition(" denied the request: ")
    return words if separator and prefix.startswith("admission webhook ") else message


def _path(manifest: KubeObject) -> str:
    return _resource(manifest).path(NAMESPACE)


def _resource(manifest: KubeObject) -> Resource:
    _, _, version = manifest["apiVersion"].partition("/")
    for each in definition_of(manifest["kind"]).versions:
        if each.resource.version == version:
            return each.resource
    raise AssertionError(f"no such kind: {manifest['kind']} {version}")


def _in_namespace(manifest: KubeObject) -> KubeObject:
    placed = copy.deepcopy(manifest)
    placed["metadata"]["namespace"] = NAMESPACE
    return placed


async def test_a_claimed_deletion_or_status_does_not_bypass_validation(clusters: Clusters, server: ApiServer) -> None:
    """Users cannot bypass validation by claims that an object is being deleted, or about its status."""
    await clusters.become("full")
    bad = copy.deepcopy(PROBE)
    bad["spec"]["components"][0]["replicas"] = 2
    bad["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    bad["status"] = {"state": "successful", "rollingUpdate": {"phase": "Completed"}}
    status, answer = await server.ask("POST", _path(bad), _in_namespace(bad))
    assert (status, _words(answer)) == (422, "spec.components[0].replicas: must be 1 for an endpoint picker, not 2")

    status, made = await server.ask("POST", _path(PROBE), _in_namespace(PROBE))
    assert status == 201
    try:
        bad["metadata"] = {**made["metadata"], **bad["metadata"]}
        status, _ = await server.ask("PUT", f"{_path(bad)}/probe", bad)
        assert 400 <= status < 500
        status, after = await server.ask("GET", f"{_path(bad)}/probe")
        assert after["spec"] == made["spec"]
    finally:
        await server.ask("DELETE", f"{_path(bad)}/probe")


async def test_a_status_in_a_written_object_is_not_a_reason_to_reject(clusters: Clusters, server: ApiServer) -> None:
    """The API server drops it: an object that is read and written back contains one, perhaps an outdated one."""
    await clusters.become("full")
    status, answer = await server.ask(
        "POST", _path(PROBE), {**_in_namespace(PROBE), "status": {"state": "once-known", "observedGeneration": 7}}
    )
    assert status == 201, answer.get("message")
    assert "status" not in answer
    await server.ask("DELETE", f"{_path(PROBE)}/probe")
