"""The tenant first creates objects with names that the platform would use: they stay the tenant's."""

from typing import Any

from dynamo_shared.api import resources
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import Resource

from tests.hostile.attack import Attack, add
from tests.hostile.objects import graph, obj, request
from tests.hostile.world import World

ROW = "objects of the tenant's own"
_POD = {"spec": {"containers": [{"name": "main", "image": "busybox"}]}, "metadata": {"labels": {"a": "b"}}}


def _taken(name: str, does: str, resource: Resource, taken: str, *then: Any, **fields: Any) -> None:
    async def run(world: World) -> None:
        own = obj(resource, world.namespace, taken, labels={"hostile": "own"}, **fields)
        answer = await world.create(own)
        if not answer.ok:
            # If the ClusterRole edit does not allow it, a user with more rights may have done it.
            answer = await world.admin.create(own)
        assert answer.ok, f"not created: {answer}"
        world.memory["own"] = (resource, taken, _content(answer.json()))
        for each in then:
            await world.create(each(world.namespace))

    async def check(world: World) -> None:
        resource_, taken_, before = world.memory["own"]
        observed = await world.admin.get(resource_, world.namespace, taken_)
        assert observed is not None, f"{resource_.kind} {taken_} is gone"
        entries = observed["metadata"].get("managedFields", ())
        # Errors of an object are written into its status.
        managers = {entry["manager"] for entry in entries if entry.get("subresource") != "status"}
        managed = {each for each in managers if each.startswith("dynamo")}
        assert not managed, f"{resource_.kind} {taken_} of the tenant has fields of {sorted(managed)}"
        assert _content(observed) == before, f"{resource_.kind} {taken_} of the tenant was changed"

    add(Attack(f"taken-{name}", ROW, does, run, check, "it stays as the tenant created it", 2.5))


def _content(observed: KubeObject) -> KubeObject:
    """The parts that the platform could change, without status and fields of Kubernetes' controllers."""
    object_labels = observed["metadata"]
    return {
        "labels": object_labels.get("labels"),
        "owners": object_labels.get("ownerReferences"),
        **{each: observed.get(each) for each in ("data", "rules", "roleRef", "subjects", "imagePullSecrets")},
        "selector": (observed.get("spec") or {}).get("selector"),
    }


_asks = lambda ns: request(ns, "asks", spec={"searchStrategy": "thorough", "autoApply": True})  # noqa: E731
_rapid = lambda ns: request(ns, "asks", spec={"autoApply": True})  # noqa: E731
_makes = lambda ns: graph(ns, "made")  # noqa: E731

_taken(
    "discovery-account",
    "the ServiceAccount of a graph's discovery",
    resources.SERVICE_ACCOUNTS,
    "made-k8s-service-discovery",
    _makes,
)
_taken(
    "discovery-role",
    "the Role of a graph's discovery",
    resources.ROLES,
    "made-k8s-service-discovery-role",
    _makes,
    rules=[],
)
_taken(
    "discovery-binding",
    "the RoleBinding of a graph's discovery",
    resources.ROLE_BINDINGS,
    "made-k8s-service-discovery-binding",
    _makes,
    roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "none"},
)
_taken(
    "deployment",
    "the Deployment of a component",
    resources.DEPLOYMENTS,
    "made-frontend",
    _makes,
    spec={"selector": {"matchLabels": {"a": "b"}}, "template": _POD},
)
_taken(
    "service",
    "the Service of a component",
    resources.SERVICES,
    "made-frontend",
    _makes,
    spec={"selector": {"a": "b"}, "ports": [{"port": 80}]},
)
_taken(
    "component",
    "the component deployment of a graph",
    resources.DYNAMO_COMPONENT_DEPLOYMENTS,
    "made-frontend",
    _makes,
    spec={"backendFramework": "vllm", "name": "Lone", "type": "frontend", "replicas": 0},
)
_taken(
    "profiling-account", "the ServiceAccount of profiling Jobs", resources.SERVICE_ACCOUNTS, "dgdr-profiling-job", _asks
)
_taken("profiling-role", "the Role of profiling Jobs", resources.ROLES, "dgdr-profiling-job", _asks, rules=[])
_taken(
    "profiling-output",
    "the ConfigMap of a profiling's results",
    resources.CONFIG_MAPS,
    "dgdr-output-asks",
    _asks,
    data={"final_config.yaml": "a: b"},
)
_taken(
    "planner-data",
    "the ConfigMap of a planner's profile",
    resources.CONFIG_MAPS,
    "planner-profile-data",
    _rapid,
    data={"x": "y"},
)
_taken(
    "profiling-job",
    "the Job of a profiling",
    resources.JOBS,
    "profile-asks",
    _asks,
    spec={
        "suspend": True,
        "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "x"}]}},
    },
)
_taken(
    "adapter",
    "the adapter of a component",
    resources.DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS,
    "made-frontend",
    _makes,
    spec={"replicas": 0, "dgdRef": {"name": "none", "componentName": "Frontend"}},
)
