"""Run recorded cases on a real API server and compare: `python -m tests.conformance.run DIR`.

Every case gets its own namespace; its manifests pass the webhooks and the whole platform. When the objects in the
namespace no longer change, they are compared with the recording. The last line counts the equal ones.
"""

import argparse
import asyncio
import importlib
import json
import logging
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import structlog
from dynamo_ctl import services, webhooks
from dynamo_devcluster import free_port
from dynamo_devcluster.controlplane import ControlPlane
from dynamo_devcluster.programs import Programs
from dynamo_devcluster.servers import NatsServer
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENTS, NAMESPACES, ObjectKey, Resource
from dynamo_shared.kube import KubeClient
from dynamo_shared.kube.errors import KubeError
from dynamo_shared.runtime import load_settings, running

from tests.building.control_plane import prepared

from . import definitions, differences

CONFORMANCE = Path(__file__).parents[3] / "shared" / "conformance"
AT_ONCE = 8
#: A case is settled when nothing has changed for this long. Seconds.
QUIET = 1.0
SETTLED_WITHIN = 60.0

COMPARED = (
    *(
        Resource("nvidia.com", "v1beta1", plural, kind)
        for plural, kind in (
            ("dynamocomponentdeployments", "DynamoComponentDeployment"),
            ("dynamographdeploymentscalingadapters", "DynamoGraphDeploymentScalingAdapter"),
        )
    ),
    Resource("nvidia.com", "v1alpha1", "dynamocheckpoints", "DynamoCheckpoint"),
    Resource("apps", "v1", "deployments", "Deployment"),
    Resource("leaderworkerset.x-k8s.io", "v1", "leaderworkersets", "LeaderWorkerSet"),
    Resource("grove.io", "v1alpha1", "podcliquesets", "PodCliqueSet"),
    Resource("", "v1", "services", "Service"),
    Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim"),
    Resource("", "v1", "configmaps", "ConfigMap"),
    Resource("", "v1", "serviceaccounts", "ServiceAccount"),
    Resource("rbac.authorization.k8s.io", "v1", "roles", "Role"),
    Resource("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding"),
    Resource("networking.k8s.io", "v1", "ingresses", "Ingress"),
    Resource("inference.networking.k8s.io", "v1", "inferencepools", "InferencePool"),
    Resource("resource.k8s.io", "v1", "resourceclaimtemplates", "ResourceClaimTemplate"),
)
#: Objects that Kubernetes creates in every namespace.
OWN = {("serviceaccounts", "default"), ("configmaps", "kube-root-ca.crt")}


@dataclass(frozen=True, slots=True)
class Outcome:
    """The objects that a case produced, and the errors of the API server for its input."""

    namespace: str
    objects: dict[str, KubeObject]
    refused: tuple[str, ...]
    failed: tuple[str, ...]


@asynccontextmanager
async def control_plane(nodes: int = 0) -> AsyncIterator[ControlPlane]:
    """Kubernetes with everything that the cases need; with `nodes`, pods run, too."""
    programs = Programs()
    options = await prepared(programs, scheduler=nodes > 0, kwok_nodes=nodes)
    async with ControlPlane(options, programs) as plane:
        async with await _client(plane) as kube:
            await definitions.install(kube)
        yield plane


@asynccontextmanager
async def platform(plane: ControlPlane, folder: Path, *, grove: bool) -> AsyncIterator[KubeClient]:
    """All services on a control plane. Platforms may run on it one after another: NATS starts empty."""
    async with AsyncExitStack() as stack:
        program = await Programs().obtain("nats-server")
        nats = await stack.enter_async_context(NatsServer(program, folder / "nats"))
        kube = await stack.enter_async_context(await _client(plane))
        environ = {
            "DYNAMO_PLATFORM__KUBERNETES__KUBECONFIG": str(plane.kubeconfig),
            "DYNAMO_PLATFORM__NATS__SERVERS": nats.url,
            "DYNAMO_SERVER__METRICS__PORT": "0",
            "DYNAMO_SERVER__METRICS__SECURE": "false",
            "DYNAMO_SERVER__HEALTH_PROBE__PORT": "0",
            "DYNAMO_PLATFORM__DYNADMIN__PORT": "0",
            "DYNAMO_PLATFORM__DYNADMIN__DRAIN": "0s",
            "DYNAMO_ORCHESTRATORS__GROVE__ENABLED": str(grove).lower(),
        }
        settings = webhooks.on_loopback(load_settings(CONFORMANCE / "operator-config.yaml", environ), free_port())
        await webhooks.make_namespace(kube, settings)
        up = await stack.enter_async_context(running(services.make(), settings))
        await up.ready()
        yield kube


def _client(plane: ControlPlane) -> Awaitable[KubeClient]:
    return KubeClient.open(kubeconfig=plane.kubeconfig, field_manager="conformance")


async def run_case(kube: KubeClient, case: KubeObject, namespace: str) -> Outcome:
    """Create the objects of a case, wait until nothing changes, read everything, and clean up."""
    await kube.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    try:
        refused = await create(kube, case, namespace)
        objects, failed = await _settled(kube, namespace)
    finally:
        for graph in await kube.list(DYNAMO_GRAPH_DEPLOYMENTS, namespace):
            await kube.delete(DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey(namespace, graph["metadata"]["name"]))
        await kube.delete(NAMESPACES, ObjectKey("", namespace))
    return Outcome(namespace, objects, tuple(refused), tuple(failed))


async def create(kube: KubeClient, case: KubeObject, namespace: str) -> list[str]:
    """Create the claims and manifests of a case; the refusals of the API server, with reasons."""
    refused = []
    claims = [_claim(name) for name in case["existing_pvcs"]]
    for manifest in [*claims, *case["input"]]:
        try:
            await kube.create(
                _resource(manifest), {**manifest, "metadata": manifest["metadata"] | {"namespace": namespace}}
            )
        except KubeError as error:
            refused.append(f"{manifest['kind']} {manifest['metadata']['name']}: {error}")
    return refused


def _claim(name: str) -> KubeObject:
    spec = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": spec}


def _resource(manifest: KubeObject) -> Resource:
    group, _, version = manifest["apiVersion"].rpartition("/")
    known = {each.kind: each.plural for each in (*COMPARED, DYNAMO_GRAPH_DEPLOYMENTS)}
    kind = manifest["kind"]
    return Resource(
        group, version, known.get(kind, f"{kind.lower()}s"), kind, namespaced=not kind.startswith("Cluster")
    )


async def _settled(kube: KubeClient, namespace: str) -> tuple[dict[str, KubeObject], list[str]]:
    before: dict[str, str] = {}
    quiet_since = asyncio.get_running_loop().time()
    async with asyncio.timeout(SETTLED_WITHIN):
        while True:
            objects = await _read(kube, namespace)
            graphs = await kube.list(DYNAMO_GRAPH_DEPLOYMENTS, namespace)
            versions = {key: obj["metadata"]["resourceVersion"] for key, obj in objects.items()}
            now = asyncio.get_running_loop().time()
            observed = all(_observed(graph) for graph in graphs)
            if versions != before or not observed:
                before, quiet_since = versions, now
            elif now - quiet_since >= QUIET:
                return objects, [each for graph in graphs for each in _failures(graph)]
            await asyncio.sleep(0.2)


def _observed(graph: KubeObject) -> bool:
    return bool(graph.get("status", {}).get("observedGeneration") == graph["metadata"]["generation"])


def _failures(graph: KubeObject) -> Iterator[str]:
    if graph.get("status", {}).get("state") == "failed":
        messages = {each["message"] for each in graph["status"].get("conditions", ()) if each["status"] == "False"}
        yield f"{graph['metadata']['name']} failed: {'; '.join(sorted(messages))}"


async def _read(kube: KubeClient, namespace: str) -> dict[str, KubeObject]:
    results: dict[str, KubeObject] = {}
    for resource in COMPARED:
        for obj in await kube.list(resource, namespace):
            name = obj["metadata"]["name"]
            if (resource.plural, name) not in OWN:
                results[f"{resource.group or 'core'}/{resource.version}/{resource.plural}/{name}"] = obj
    return results


def compare(
    rules: ModuleType, comparer: ModuleType, slug: str, case: KubeObject, outcome: Outcome
) -> tuple[int, int, list[str]]:
    """The number of objects compared, the number equal, and the differences that differences.toml does not list."""
    made = {(_resource(each).plural, each["metadata"]["name"]) for each in case["input"]}
    got = rules.canonical(outcome.objects, outcome.namespace, rules.given(case) | made)
    want = case["expected"]
    listed = differences.load()
    results: list[str] = []
    equal = 0
    for key in sorted(want.keys() | got.keys()):
        if key in want and key in got:
            wrong = [
                each
                for each in comparer.paths(want[key], got[key])
                if not differences.listed_in(listed, slug, key, each[0])
            ]
        else:
            wrong = [] if differences.listed_in(listed, slug, key, "") else [("", key in want, key in got)]
        equal += not wrong
        for path, expected, actual in wrong:
            if path:
                results.append(f"{key}{path}: expected {json.dumps(expected)[:160]}, got {json.dumps(actual)[:160]}")
            else:
                results.append(f"{'missing' if key in want else 'unexpected'} {key}")
    return len(want.keys() | got.keys()), equal, results


async def run(cases: dict[str, KubeObject], show: int) -> int:
    """Run cases, by their names; exit code 0 if everything is equal."""
    grove = any("/podcliquesets/" in key for case in cases.values() for key in case["expected"])
    sys.path.insert(0, str(CONFORMANCE))
    rules, comparer = importlib.import_module("canonical"), importlib.import_module("compare")
    objects = equal = good = 0
    with tempfile.TemporaryDirectory(prefix="dynamo-conformance-") as state:
        async with control_plane() as plane, platform(plane, Path(state), grove=grove) as kube:
            free = asyncio.Semaphore(AT_ONCE)

            async def one(number: int, case: KubeObject) -> Outcome:
                async with free:
                    return await run_case(kube, case, f"case-{number}")

            outcomes = await asyncio.gather(*(one(i, case) for i, case in enumerate(cases.values())))
    for (slug, case), outcome in zip(cases.items(), outcomes, strict=True):
        count, same, result = compare(rules, comparer, slug, case, outcome)
        objects, equal, good = objects + count, equal + same, good + (not result)
        if result:
            print(f"{slug}: {len(result)} differences")
            for line in [*outcome.refused, *outcome.failed, *result][:show]:
                print("   ", line)
    print(f"objects {equal}/{objects} equal, cases {good}/{len(cases)} equal")
    return 0 if good == len(cases) else 1


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="recorded cases, such as ../shared/conformance/cases/deployments")
    parser.add_argument("--case", help="only this one")
    parser.add_argument("--show", type=int, default=3, help="differences printed a case")
    options = parser.parse_args()
    files = [file for file in sorted(options.folder.glob("*.json")) if options.case in (None, file.stem)]
    if not files:
        parser.error(f"no such case in {options.folder}")
    cases = {file.stem: json.loads(file.read_text()) for file in files}
    if without := [slug for slug, case in cases.items() if "expected" not in case]:
        parser.error(
            f"nothing was recorded of {', '.join(without)}: tests/conformance/test_must_run.py runs such cases"
        )
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    return asyncio.run(run(cases, options.show))


if __name__ == "__main__":
    sys.exit(main())
