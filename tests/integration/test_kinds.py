"""Every version of every kind on a real API server: stored as written, defaulted, rejected, explained.

Versions that need a conversion webhook are installed here as separate kinds in a separate group with the same schema,
so the tests need no service of the platform.
"""

import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import pytest
import yaml
from dynamo_devcluster.controlplane import ControlPlane
from dynamo_devcluster.programs import Programs
from dynamo_shared.api import resources
from dynamo_shared.api.conversion import convert
from dynamo_shared.api.crds import crd_manifests
from dynamo_shared.api.crds.build import at, schema_of
from dynamo_shared.api.crds.kinds import DEFINITIONS
from dynamo_shared.api.manifest import load_manifest, schema_errors
from dynamo_shared.api.model import to_dict
from dynamo_shared.api.resources import CUSTOM_RESOURCE_DEFINITIONS, ObjectKey, Resource
from dynamo_shared.kube import KubeClient, discovery
from dynamo_shared.kube.errors import Invalid, KubeError

from . import command

Kubectl = Callable[..., Awaitable[tuple[str, str]]]
ALONE = "alone.example.com"
VERSIONS = {
    f"{version.resource.kind}-{version.resource.version}": version.resource
    for each in DEFINITIONS
    for version in each.versions
}


def crd_of(resource: Resource) -> dict[str, Any]:
    return next(crd for crd in crd_manifests() if crd["spec"]["names"]["kind"] == resource.kind)


def without_conversion(resource: Resource) -> Resource:
    """The kind under which a version can be used without conversion."""
    definition = next(each for each in DEFINITIONS if each.kind == resource.kind)
    if resource == definition.resource or not definition.is_converted:
        return resource
    return Resource(ALONE, resource.version, f"alone{resource.plural}", f"Alone{resource.kind}")


@pytest.fixture(scope="module")
async def versions(kube: KubeClient) -> AsyncIterator[None]:
    """Install the versions that are not storage versions as separate kinds."""
    made = []
    for resource in VERSIONS.values():
        if without_conversion(resource) == resource:
            continue
        crd, copied = crd_of(resource), without_conversion(resource)
        crd["metadata"]["name"] = f"{copied.plural}.{ALONE}"
        crd["spec"]["group"] = ALONE
        crd["spec"]["names"] = {"kind": copied.kind, "plural": copied.plural}
        del crd["spec"]["conversion"]
        (version,) = (each for each in crd["spec"]["versions"] if each["name"] == resource.version)
        crd["spec"]["versions"] = [{**version, "storage": True}]
        made.append(crd)
    await discovery.install_crds(kube, made)
    yield
    for crd in made:
        await kube.delete(CUSTOM_RESOURCE_DEFINITIONS, ObjectKey("", crd["metadata"]["name"]))


def manifest(resource: Resource, namespace: str, spec: Any, name: str = "a") -> dict[str, Any]:
    return {**without_conversion(resource).type_meta, "metadata": {"name": name, "namespace": namespace}, "spec": spec}


def written(obj: dict[str, Any], resource: Resource) -> dict[str, Any]:
    """The object as people write it: in the platform's group, without fields that a server adds."""
    metadata = {name: obj["metadata"][name] for name in ("name", "namespace")}
    return {**obj, **resource.type_meta, "metadata": metadata}


EMBEDDED: dict[str, Any] = {
    "PodTemplateSpec": {"spec": {"containers": [{"name": "main", "newer": True}]}},
    "PodSpec": {"tolerations": [{"operator": "Exists"}], "mainContainer": {"image": "x"}},
    "JobSpec": {"backoffLimit": 1},
}


def full(schema: dict[str, Any]) -> Any:
    """A value with every field of a schema."""
    if "x-dynamo-embedded" in schema:
        return EMBEDDED.get(schema["x-dynamo-embedded"]["type"].rpartition(".")[2], {"name": "a", "newer": [1]})
    if schema.get("x-kubernetes-int-or-string"):
        return "1Gi"
    if "enum" in schema:
        return schema["enum"][-1] or schema["enum"][0]
    match schema.get("type"):
        case "object" if "additionalProperties" in schema:
            return {"any": full(schema["additionalProperties"])}
        case "object" if schema.get("properties"):
            rules = [each["rule"] for each in schema.get("x-kubernetes-validations", ())]
            # If one of two must be set, set the reference to a document.
            one_of_two = {"configMapRef"} if any("has(self.configMapRef) != " in rule for rule in rules) else set()
            return {name: full(child) for name, child in schema["properties"].items() if name not in one_of_two}
        case "object" if not schema.get("x-kubernetes-preserve-unknown-fields"):
            return {}
        case "array":
            return [full(schema["items"])]
        case "string" if "pattern" in schema:
            return next(word for word in ("a", "1.5.0") if re.search(schema["pattern"], word))
        case "string":
            return "2026-11-21T05:00:00Z" if schema.get("format") == "date-time" else "a"
        case "integer":
            return min(schema.get("minimum", 0) + 1, schema.get("maximum", 1 << 31))
        case "number":
            return 0.5
        case "boolean":
            return True
    return {"any": [1, {"thing": "goes"}]}


@pytest.mark.usefixtures("versions")
@pytest.mark.parametrize("resource", VERSIONS.values(), ids=VERSIONS.keys())
async def test_every_field_is_stored_as_written(kube: KubeClient, namespace: str, resource: Resource) -> None:
    properties = schema_of(resource)["properties"]
    spec = full(properties["spec"])
    created = await kube.create(without_conversion(resource), manifest(resource, namespace, spec))
    assert created["spec"] == spec
    assert to_dict(load_manifest(written(created, resource)))["spec"] == spec
    if "status" in properties:
        status = full(properties["status"])
        obj = {**manifest(resource, namespace, {}), "status": status}
        del obj["spec"]
        stored = await kube.apply_status(without_conversion(resource), obj)
        assert stored["status"] == status
        assert to_dict(load_manifest(written(stored, resource)))["status"] == status


IDENTITY = {"model": "m", "backendFramework": "vllm"}
SHORT_MODEL = {"modelName": "m", "baseModelName": "b"}
SHORT_CHECKPOINT = {"identity": IDENTITY, "job": {"podTemplateSpec": {}}, "gpuMemoryService": {"enabled": True}}
SHORT_COMPONENT: dict[str, Any] = {
    "name": "a",
    "type": "epp",
    "replicas": None,
    "multinode": {},
    "eppConfig": {"configMapRef": {"key": "k"}},
    "experimental": {"gpuMemoryService": {}, "failover": {}, "checkpoint": {"identity": IDENTITY}},
}
# Specs with every field left out that has a default.
SHORT: dict[str, dict[str, Any]] = {
    "DynamoGraphDeployment-v1alpha1": {
        "restart": {"id": "1", "strategy": {}},
        "services": {
            "a": {
                "multinode": {},
                "checkpoint": {"identity": IDENTITY},
                "gpuMemoryService": {"enabled": False},
                "failover": {"enabled": False},
                "scalingAdapter": {},
                "eppConfig": {"configMapRef": {"key": "k"}},
                "volumeMounts": [{"name": "v"}],
            }
        },
    },
    "DynamoGraphDeployment-v1beta1": {"restart": {"id": "1", "strategy": {}}, "components": [SHORT_COMPONENT]},
    "DynamoComponentDeployment-v1beta1": SHORT_COMPONENT,
    "DynamoComponentDeployment-v1alpha1": {"multinode": {}, "checkpoint": {}, "volumeMounts": [{"name": "v"}]},
    "DynamoGraphDeploymentRequest-v1alpha1": {
        "model": "m",
        "backend": "auto",
        "profilingConfig": {"profilerImage": "i", "configMapRef": {"name": "c"}},
    },
    "DynamoGraphDeploymentRequest-v1beta1": {"model": "m", "workload": {}, "modelCache": {}},
    "DynamoModel-v1alpha1": SHORT_MODEL,
    "DynamoModel-v1beta1": SHORT_MODEL,
    "DynamoCheckpoint-v1alpha1": SHORT_CHECKPOINT,
    "DynamoCheckpoint-v1beta1": SHORT_CHECKPOINT,
    "DynamoNimDeployment-v1alpha1": {"dynamoNamespace": "d", "dynamoNim": "n", "dynamoTag": "t", "serviceName": "s"},
}


def has_default(schema: Any) -> bool:
    if isinstance(schema, list):
        return any(has_default(each) for each in schema)
    return isinstance(schema, dict) and ("default" in schema or any(has_default(each) for each in schema.values()))


def test_every_default_is_tested() -> None:
    with_defaults = {
        name for name, resource in VERSIONS.items() if has_default(schema_of(resource)["properties"]["spec"])
    }
    assert with_defaults <= set(SHORT)


@pytest.mark.usefixtures("versions")
@pytest.mark.parametrize(("name", "spec"), SHORT.items(), ids=SHORT.keys())
async def test_defaults_of_the_platform_equal_those_of_the_api_server(
    kube: KubeClient, name: str, spec: dict[str, Any]
) -> None:
    resource = VERSIONS[name]
    short = manifest(resource, "default", spec)
    created = await kube.create(without_conversion(resource), short, dry_run=True)
    assert created["spec"] != spec, "the server filled something in"
    assert to_dict(load_manifest(written(short, resource)))["spec"] == created["spec"]


ALPHA_GRAPH, ALPHA_COMPONENT = "DynamoGraphDeployment-v1alpha1", "DynamoComponentDeployment-v1alpha1"
BETA_GRAPH, BETA_COMPONENT = "DynamoGraphDeployment-v1beta1", "DynamoComponentDeployment-v1beta1"
NO_SIZE = "size must be set and above 0"
# Violations of rules between fields of v1beta1 components, by the rule's message; valid for both kinds.
BROKEN_COMPONENTS: list[tuple[str, list[dict[str, Any]]]] = [
    ("a graph has at most one component of type epp", [{"name": "a", "type": "epp"}, {"name": "b", "type": "epp"}]),
    ("component names must be unique, without regard to case", [{"name": "Decode"}, {"name": "dECODE"}]),
    ("eppConfig needs type epp", [{"name": "a", "type": "worker", "eppConfig": {"configMapRef": {"key": "k"}}}]),
    ("eppConfig needs type epp", [{"name": "a", "eppConfig": {"configMapRef": {"key": "k"}}}]),
    ("exactly one of configMapRef and config must be set", [{"name": "a", "type": "epp", "eppConfig": {}}]),
    (
        "exactly one of configMapRef and config must be set",
        [
            {
                "name": "a",
                "type": "epp",
                "eppConfig": {"configMapRef": {"key": "k"}, "config": {"plugins": [], "schedulingProfiles": []}},
            }
        ],
    ),
]
# Rules between fields, by their message, each with a violation.
BROKEN: list[tuple[str, dict[str, Any], str]] = [
    (ALPHA_GRAPH, {"services": {"a": {"sharedMemory": {}}}}, NO_SIZE),
    (ALPHA_GRAPH, {"pvcs": [{"name": "a", "create": True, "size": "1Gi"}]}, "create needs size, storageClass and"),
    (ALPHA_COMPONENT, {"sharedMemory": {"size": "0"}}, NO_SIZE),
    (ALPHA_COMPONENT, {"sharedMemory": {"disabled": False, "size": "-1Gi"}}, NO_SIZE),
    (ALPHA_COMPONENT, {"sharedMemory": {"size": 5}}, "no such overload"),
    *(
        (
            f"DynamoCheckpoint-{version}",
            {"identity": IDENTITY, "job": {"podTemplateSpec": {}, "sharedMemory": {"disabled": False}}},
            NO_SIZE,
        )
        for version in ("v1alpha1", "v1beta1")
    ),
    *((BETA_GRAPH, {"components": parts}, message) for message, parts in BROKEN_COMPONENTS),
    *((BETA_COMPONENT, parts[0], message) for message, parts in BROKEN_COMPONENTS if len(parts) == 1),
]


@pytest.mark.usefixtures("versions")
@pytest.mark.parametrize(("name", "spec", "message"), BROKEN)
async def test_api_server_and_platform_reject_each_violated_rule(
    kube: KubeClient, name: str, spec: dict[str, Any], message: str
) -> None:
    resource = VERSIONS[name]
    bad = manifest(resource, "default", spec)
    with pytest.raises(Invalid, match=message):
        await kube.create(without_conversion(resource), bad, dry_run=True)
    assert schema_errors(written(bad, resource))


def rules_of(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        yield from (rule["message"] for rule in schema.get("x-kubernetes-validations", []))
        for child in schema.values():
            yield from rules_of(child)


def test_every_rule_is_tested() -> None:
    tried: dict[str, set[str]] = {}
    for name, _, message in BROKEN:
        tried.setdefault(name, set()).add(message)
    for name, resource in VERSIONS.items():
        for message in set(rules_of(schema_of(resource))) - {
            "identity cannot be changed; create another DynamoCheckpoint"
        }:
            assert any(message.startswith(each) for each in tried.get(name, ())), f"{name}: {message}"


@pytest.mark.parametrize("version", ["v1alpha1", "v1beta1"])
async def test_the_identity_of_a_checkpoint_is_immutable(kube: KubeClient, namespace: str, version: str) -> None:
    checkpoints = resources.DYNAMO_CHECKPOINTS.at(version)
    made = manifest(checkpoints, namespace, {"identity": IDENTITY, "job": {"podTemplateSpec": {}}})
    await kube.apply(checkpoints, made)
    made["spec"]["identity"] = {**IDENTITY, "model": "other"}
    with pytest.raises(Invalid, match="identity cannot be changed; create another DynamoCheckpoint"):
        await kube.apply(checkpoints, made)


@pytest.mark.parametrize(
    ("resource", "spec"),
    [
        (resources.DYNAMO_MODELS, {"modelName": "m", "baseModelName": "b", "modelType": "base"}),
        (resources.DYNAMO_CHECKPOINTS, {"identity": IDENTITY, "job": {"podTemplateSpec": {"spec": {"newer": [1]}}}}),
        (resources.DYNAMO_WORKER_METADATAS, {"data": {"endpoints": {"a": [1, None, {"b": 0.5}]}}}),
    ],
    ids=lambda each: getattr(each, "kind", ""),
)
async def test_versions_of_the_same_shape_are_converted_without_a_service(
    kube: KubeClient, namespace: str, resource: Resource, spec: dict[str, Any]
) -> None:
    """No webhook runs here: the API server alone converts, because the versions have the same shape."""
    alpha, beta = resource.at("v1alpha1"), resource.at("v1beta1")
    for name, here, there in (("a", alpha, beta), ("b", beta, alpha)):
        key = ObjectKey(namespace, name)
        created = await kube.create(here, manifest(here, namespace, spec, name))
        read = await kube.get(there, key)
        assert (read["apiVersion"], read["spec"]) == (there.api_version, created["spec"])
        assert convert(created, there.api_version)["spec"] == read["spec"]
        await kube.replace(there, read)
        again = await kube.get(here, key)
        assert again["spec"] == created["spec"]
        assert again["metadata"].get("generation") == created["metadata"].get("generation"), "nothing has changed"
    for version in (alpha, beta):
        assert {each["metadata"]["name"] for each in await kube.list(version, namespace)} == {"a", "b"}


BAD_COMPONENTS: list[dict[str, Any]] = [
    {"type": "Worker"},
    {"replicas": -1},
    {"replicas": "1"},
    {"replicas": 1.5},
    {"name": ""},
    {"name": "a" * 64},
    {"name": "-a"},
    {"name": "a\n"},
    {"multinode": {"nodeCount": 1}},
    {"modelRef": {}},
    {"modelRef": {"name": ""}},
    {"compilationCache": {"mountPath": "/x"}},
    {"sharedMemorySize": "1GB"},
    {"sharedMemorySize": True},
    {"topologyConstraint": {"packDomain": "Rack"}},
    {"topologyConstraint": {}},
    {"globalDynamoNamespace": "true"},
    {"frontendSidecar": 1},
    {"podTemplate": []},
    {"experimental": {"failover": {"numShadows": 2}}},
    {"experimental": {"failover": {"mode": "intraPod"}}},
    {"experimental": {"checkpoint": {"identity": {"model": "m"}}}},
    {"experimental": {"checkpoint": {"identity": {"model": "m", "backendFramework": "vllm", "maxModelLen": 0}}}},
    {"type": "epp", "eppConfig": {"config": {"plugins": [{"name": "n"}], "schedulingProfiles": []}}},
    {"type": "epp", "eppConfig": {"config": {"plugins": []}}},
]
BAD: list[tuple[str, dict[str, Any]]] = [
    (ALPHA_GRAPH, {"services": {"a": {"replicas": -1}}}),
    (ALPHA_GRAPH, {"services": {"a": {"multinode": {"nodeCount": 1}}}}),
    (ALPHA_GRAPH, {"services": {"a": {"resources": {"limits": {"gpu": 1}}}}}),
    (ALPHA_GRAPH, {"services": {"a": {"failover": {"enabled": True, "mode": "IntraPod"}}}}),
    (ALPHA_GRAPH, {"services": {"a": {"frontendSidecar": {}}}}),
    (ALPHA_GRAPH, {"services": {"a": {"extraPodSpec": {"mainContainer": "x"}}}}),
    (ALPHA_GRAPH, {"services": {"a": {"modelRef": {}}}}),
    (ALPHA_GRAPH, {"services": {"a": {"components": []}}}),
    (ALPHA_GRAPH, {"services": {f"s{number}": {} for number in range(26)}}),
    (ALPHA_GRAPH, {"pvcs": [{"name": f"c{number}"} for number in range(101)]}),
    (BETA_GRAPH, {"components": [{"name": f"c{number}"} for number in range(26)]}),
    (ALPHA_GRAPH, {"topologyConstraint": {"topologyProfile": ""}}),
    (ALPHA_COMPONENT, {"envs": {}}),
    (ALPHA_COMPONENT, {"sharedMemory": {"size": 1.5}}),
    (ALPHA_COMPONENT, {"sharedMemory": {"size": True}}),
    ("DynamoGraphDeploymentScalingAdapter-v1alpha1", {"dgdRef": {"name": "g"}, "replicas": 1}),
    ("DynamoGraphDeploymentScalingAdapter-v1beta1", {"dgdRef": {"name": "g", "componentName": "c"}}),
    (
        "DynamoGraphDeploymentScalingAdapter-v1beta1",
        {"dgdRef": {"name": "g", "componentName": "c"}, "replicas": 3_000_000_000},
    ),
    ("DynamoGraphDeploymentRequest-v1beta1", {"model": ""}),
    ("DynamoGraphDeploymentRequest-v1beta1", {"model": "m", "sla": {"optimizationType": "cost"}}),
    (
        "DynamoGraphDeploymentRequest-v1alpha1",
        {"model": "m", "backend": "x", "profilingConfig": {"profilerImage": "i"}},
    ),
    ("DynamoModel-v1alpha1", {"modelName": "m", "baseModelName": "b", "modelType": "LoRA"}),
    ("DynamoCheckpoint-v1alpha1", {"identity": IDENTITY}),
    ("DynamoWorkerMetadata-v1alpha1", {"data": []}),
    ("DynamoDeployment-v1alpha1", {"services": {}}),
    ("DynamoNimDeployment-v1alpha1", {"dynamoNim": "n"}),
    ("DynamoNimRequest-v1alpha1", {}),
    *((BETA_GRAPH, {"components": [{"name": "a", **bad}]}) for bad in BAD_COMPONENTS),
]


@pytest.mark.usefixtures("versions")
@pytest.mark.parametrize(("name", "spec"), BAD, ids=lambda each: json.dumps(each)[:60])
async def test_the_platform_rejects_what_the_api_server_rejects(
    kube: KubeClient, name: str, spec: dict[str, Any]
) -> None:
    resource = VERSIONS[name]
    bad = manifest(resource, "default", spec)
    with pytest.raises(KubeError):
        await kube.create(without_conversion(resource), bad, dry_run=True)
    assert schema_errors(written(bad, resource))


SERVICE = {"sharedMemory": {"size": "8Gi"}, "checkpoint": {"enabled": True, "checkpointRef": "c"}}
CLAIM = {"create": True, "size": "1Gi", "storageClass": "s", "volumeAccessMode": "ReadWriteMany"}
# Graphs with as many parts as allowed.
LARGEST: dict[str, dict[str, Any]] = {
    ALPHA_GRAPH: {
        "services": {f"s{number}": SERVICE for number in range(25)},
        "pvcs": [{"name": f"c{number}", **CLAIM} for number in range(100)],
    },
    BETA_GRAPH: {"components": [{"name": f"{'n' * 60}{number:03}", "podTemplate": {}} for number in range(25)]},
}


@pytest.mark.usefixtures("versions")
@pytest.mark.parametrize(("name", "spec"), LARGEST.items(), ids=LARGEST.keys())
async def test_a_graph_as_large_as_allowed_is_within_the_cost_of_its_rules(
    kube: KubeClient, name: str, spec: dict[str, Any]
) -> None:
    resource = VERSIONS[name]
    await kube.create(without_conversion(resource), manifest(resource, "default", spec), dry_run=True)


@pytest.fixture
async def kubectl(programs: Programs, control_plane: ControlPlane) -> Kubectl:
    """The output of kubectl, and its warnings."""
    program = await programs.obtain("kubectl")

    async def run(*arguments: str) -> tuple[str, str]:
        _, out, err = await command.kubectl(program, control_plane.kubeconfig, *arguments)
        return " ".join(out.split()), " ".join(err.split())

    return run


async def test_kubectl_explains_the_stored_version_and_the_others(kubectl: Kubectl) -> None:
    text, _ = await kubectl("explain", "dgd.spec.components")
    assert "VERSION: v1beta1" in text
    assert "name <string> -required-" in text
    assert "Pod template, merged over the defaults of type and backend" in text
    text, _ = await kubectl("explain", "dgd.spec.services", "--api-version=nvidia.com/v1alpha1")
    assert "services <map[string]Object>" in text
    assert "Deprecated: enable scalingAdapter, without which this field has no effect" in text
    text, _ = await kubectl("explain", "dgd", "--api-version=nvidia.com/v1alpha1")
    assert "Deprecated: write apiVersion: nvidia.com/v1beta1." in text
    text, _ = await kubectl("explain", "dgd.spec.services.extraPodSpec", "--api-version=nvidia.com/v1alpha1")
    assert "mainContainer <Object> Container of the engine" in text


@pytest.mark.parametrize("name", VERSIONS)
async def test_every_version_is_explained(kubectl: Kubectl, name: str) -> None:
    resource = VERSIONS[name]
    text, problem = await kubectl("explain", resource.plural, f"--api-version={resource.api_version}")
    assert at(schema_of(resource), "")["description"][:40] in text, problem
    for field in schema_of(resource)["properties"]:
        assert f"{field} <" in text


async def test_short_names_and_the_category(kubectl: Kubectl) -> None:
    text, _ = await kubectl("api-resources", "--categories=dynamo", "--output=wide", "--no-headers")
    for definition in DEFINITIONS:
        names = ",".join(definition.short_names)
        newest = definition.versions[-1].resource
        assert f"{newest.plural} {names} {newest.api_version}".replace("  ", " ") in text


@pytest.mark.parametrize(("name", "instead"), [
    ("DynamoDeployment", "DynamoGraphDeployment"),
    ("DynamoNimDeployment", "DynamoComponentDeployment"),
    ("DynamoNimRequest", "image"),
    ("DynamoGraphDeployment", "nvidia.com/v1beta1"),
    ("DynamoComponentDeployment", "nvidia.com/v1beta1"),
    ("DynamoGraphDeploymentScalingAdapter", "nvidia.com/v1beta1"),
    ("DynamoGraphDeploymentRequest", "nvidia.com/v1beta1"),
])  # fmt: skip
async def test_deprecated_versions_give_warnings(kubectl: Kubectl, name: str, instead: str) -> None:
    _, warned = await kubectl("get", f"{name}.v1alpha1.nvidia.com")
    assert f"Warning: nvidia.com/v1alpha1 {name} is deprecated" in warned
    assert instead in warned


async def test_current_versions_give_no_warnings(kubectl: Kubectl) -> None:
    _, warned = await kubectl("get", "dgd,dcd,dgdsa,dgdr,dm,dmodel,dckpt,dwm")
    assert "Warning" not in warned


async def test_an_adapter_is_scaled_like_a_deployment(kube: KubeClient, kubectl: Kubectl, namespace: str) -> None:
    adapters = resources.DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS
    spec = {"dgdRef": {"name": "g", "componentName": "c"}, "replicas": 1}
    made = await kube.create(adapters, manifest(adapters, namespace, spec))
    status = {"replicas": 1, "selector": "a=b"}
    head = {key: made[key] for key in ("apiVersion", "kind")}
    await kube.apply_status(adapters, {**head, "metadata": {"name": "a", "namespace": namespace}, "status": status})
    await kubectl("scale", "dgdsa", "a", "--replicas=3", f"--namespace={namespace}")
    scale = json.loads(await kube.raw_get(adapters.path(namespace, "a", "scale")))
    assert scale["spec"] == {"replicas": 3}
    assert scale["status"] == status


class Definitions:
    """A CRD with two versions and its own name, as three releases contain it."""

    def __init__(self, plural: str) -> None:
        self.key = ObjectKey("", f"{plural}.{ALONE}")
        self._plural = plural

    def __call__(self, *versions: str, **conversion: Any) -> dict[str, Any]:
        schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        spec: dict[str, Any] = {
            "group": ALONE,
            "names": {"plural": self._plural, "kind": self._plural.capitalize()},
            "scope": "Namespaced",
            "versions": [
                {"name": name, "served": True, "storage": name == "v1beta1", "schema": {"openAPIV3Schema": schema}}
                for name in versions
            ],
        }
        if conversion:
            spec["conversion"] = conversion
        return {**CUSTOM_RESOURCE_DEFINITIONS.type_meta, "metadata": {"name": self.key.name}, "spec": spec}


def webhook(client: dict[str, Any]) -> dict[str, Any]:
    return {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": client}}


def authorities(plane: ControlPlane) -> str:
    """Any certificate authorities, in the form for a CRD."""
    cluster = yaml.safe_load(plane.kubeconfig.read_text())["clusters"][0]["cluster"]
    return str(cluster["certificate-authority-data"])


PLACEHOLDER = webhook({"service": {"namespace": "dynamo-system", "name": "x", "path": "/convert", "port": 443}})


@pytest.mark.parametrize("first", [("v1beta1",), ("v1alpha1", "v1beta1")], ids=["an upgrade", "again"])
async def test_the_conversion_of_a_definition_is_installed_once_and_kept(
    kube: KubeClient, control_plane: ControlPlane, namespace: str, first: tuple[str, ...]
) -> None:
    definitions = Definitions(f"things{namespace.replace('-', '')}")
    installer, admission = kube.acting_as("installer"), kube.acting_as("converter")
    await discovery.install_crds(installer, [definitions(*first)] if len(first) == 1 else [])
    both = definitions("v1alpha1", "v1beta1", **PLACEHOLDER)
    await discovery.install_crds(installer, [both])

    async def conversion() -> dict[str, Any]:
        observed: dict[str, Any] = (await kube.get(CUSTOM_RESOURCE_DEFINITIONS, definitions.key))["spec"]["conversion"]
        return observed

    assert await conversion() == PLACEHOLDER
    await discovery.install_crds(installer, [both])
    assert await conversion() == PLACEHOLDER, "no one else has it yet"
    client = {**PLACEHOLDER["webhook"]["clientConfig"], "caBundle": authorities(control_plane)}
    head = {key: both[key] for key in ("apiVersion", "kind", "metadata")}
    await admission.apply(CUSTOM_RESOURCE_DEFINITIONS, {**head, "spec": {"conversion": webhook(client)}})
    await discovery.install_crds(installer, [both])
    assert await conversion() == webhook(client)
    await admission.apply(CUSTOM_RESOURCE_DEFINITIONS, {**head, "spec": {"conversion": PLACEHOLDER}})
    assert await conversion() == PLACEHOLDER, "the bundle was the admission service's alone"
    await kube.delete(CUSTOM_RESOURCE_DEFINITIONS, definitions.key)
