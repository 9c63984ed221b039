"""`dynamoctl crds --check`: the fields that objects of a newer operator would lose, with advice."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from dynamo_ctl.commands.crds import losses
from dynamo_ctl.commands.crds.losses import LATER, OTHERS, what_to_do
from dynamo_ctl.errors import ExitCode
from dynamo_shared.api.crds import crd_manifests
from dynamo_shared.api.crds.build import at, schema_of
from dynamo_shared.api.crds.kinds import DEFINITIONS
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import CUSTOM_RESOURCE_DEFINITIONS, DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey, Resource
from dynamo_shared.kube import KubeClient, KubeError, NotFound
from dynamo_shared.kube.client import KubeObjects

from tests.building.objects import object_of
from tests.building.opened import Opened
from tests.unit.ctl.command_line import Dynamoctl
from tests.unit.ctl.command_line import written as written_text

Checked = Callable[..., tuple[int, list[str], str]]
"""Runs `crds --check`; exit code, lines, errors."""
ROOT = Path(__file__).parents[3]
TEMPLATE = {"spec": {"containers": [{"name": "main", "image": "engine:1.5.0"}]}}


def graph(*components: KubeObject, name: str = "chat", **spec: Any) -> KubeObject:
    return object_of(DYNAMO_GRAPH_DEPLOYMENTS, name, "team", spec={"components": list(components), **spec})


#: A graph with everything that later releases have.
LATER_GRAPH = graph(
    {
        "name": "w",
        "type": "worker",
        "podTemplate": TEMPLATE,
        "runtimeVersionOverride": "1.5.0",
        "multinode": {"nodeCount": 2},
        "roles": [{"name": "leader", "replicas": 1, "other": {}}, {"name": "worker", "replicas": 1}],
        "experimental": {"gpuMemoryService": {"mode": "IntraPod", "extraClientPods": []}},
    },
    experimental={"componentGroups": [], "other": {}},
)
FIELDS = [
    "spec.components[0].roles[0].other",
    "spec.components[0].experimental.gpuMemoryService.extraClientPods",
    "spec.experimental.componentGroups",
    "spec.experimental.other",
]


@pytest.fixture
def checked(dynamoctl: Dynamoctl) -> Checked:
    def check(*arguments: str | Path) -> tuple[int, list[str], str]:
        code, out, err = dynamoctl("crds", "--check", *arguments)
        return code, out.splitlines(), err

    return check


def written(folder: Path, *objects: Any) -> Path:
    return written_text(folder, yaml.safe_dump_all(objects, sort_keys=False))


def test_each_lost_field_is_listed_with_advice(tmp_path: Path, checked: Checked) -> None:
    file = written(tmp_path, LATER_GRAPH)
    code, lines, error = checked("--files-only", file)
    assert code == ExitCode.FAILED
    begin = f"{file}: DynamoGraphDeployment team/chat (v1beta1): "
    assert [line.removeprefix(begin).partition(" would be dropped: ")[0] for line in lines] == FIELDS
    assert all(line.partition(" would be dropped: ")[2] for line in lines)
    assert "one scale command changes several" in lines[2]
    assert error.startswith("dynamoctl: fields that would be lost or refused: 4; do what each line says")


def test_fields_of_this_platform_are_not_reported(tmp_path: Path, checked: Checked) -> None:
    files = sorted((ROOT / "examples").glob("*.yaml"))
    own = graph({"name": "w", "type": "worker", "podTemplate": TEMPLATE, "runtimeVersionOverride": "1.5.0"})
    other = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "more": 1}
    listed = {"apiVersion": "v1", "kind": "List", "items": [own, other]}
    code, lines, error = checked("--files-only", *files, written(tmp_path, listed, other))
    assert (code, error) == (ExitCode.OK, "")
    assert lines[-1].startswith("no field would be lost under the definitions of this platform (objects: ")


def test_values_that_v1alpha1_refuses_are_reported(tmp_path: Path, checked: Checked) -> None:
    service = {"componentType": "worker", "dynamoSidecar": {}, "sharedMemory": {"disabled": False}}
    obj = {**graph(), "apiVersion": "nvidia.com/v1alpha1", "spec": {"services": {"w": service}}}
    code, lines, _ = checked("--files-only", written(tmp_path, obj))
    assert code == ExitCode.FAILED
    said = [line.partition("(v1alpha1): ")[2] for line in lines]
    assert said[0].startswith("spec.services.w.dynamoSidecar would be dropped: run the Dynamo runtime")
    assert said[1].startswith("spec.services.w.sharedMemory would be refused: ")


def test_a_field_with_another_name_in_this_version_is_reported_with_that_name(tmp_path: Path, checked: Checked) -> None:
    """Manifests of Dynamo 0.3 to 0.5, and those that mix versions: removing such a field would lose its value."""
    service = {
        "componentType": "worker",
        "pvc": {"name": "models", "mountPoint": "/models", "create": False},
        "resources": {"limits": {"nvidia.com/gpu": "1"}},
    }
    alpha = {**graph(), "apiVersion": "nvidia.com/v1alpha1", "spec": {"services": {"w": service}, "env": []}}
    beta = {**graph({"name": "w", "sharedMemory": {"size": "1Gi"}})}
    code, lines, _ = checked("--files-only", written(tmp_path, alpha, beta))
    assert code == ExitCode.FAILED
    assert sorted(line.partition("): ")[2] for line in lines) == [
        "spec.components[0].sharedMemory would be dropped: v1beta1 calls it sharedMemorySize, a size, or 0 for none",
        "spec.env would be dropped: v1alpha1 calls it envs",
        "spec.services.w.pvc would be dropped: v1alpha1 has name and create in pvcs of the graph, and name and mountPoint in "
        "volumeMounts of the service",
        'spec.services.w.resources.limits["nvidia.com/gpu"] would be dropped: v1alpha1 calls it gpu',
    ]


def test_a_checkpoint_of_later_releases_is_kept(tmp_path: Path, checked: Checked) -> None:
    policies = {"startupPolicy": "Immediate", "deletionPolicy": "Delete", "targetContainerName": "main"}
    job = {"podTemplate": {"spec": {"nodeSelector": {"pool": "spare"}}}}
    some = [
        {"name": name, "experimental": {"checkpoint": {**checkpoint, **policies}}}
        for name, checkpoint in (
            ("a", {"enabled": False, "checkpointRef": "c"}),
            ("b", {"enabled": True, "checkpointRef": "c"}),
            ("c", {"enabled": True, "job": job}),
        )
    ]
    code, _, error = checked("--files-only", written(tmp_path, graph(*some)))
    assert (code, error) == (ExitCode.OK, "")


def test_unknown_kinds_and_versions_are_reported(tmp_path: Path, checked: Checked) -> None:
    budget = {"apiVersion": "nvidia.com/v1beta1", "kind": "DynamoGraphPowerBudget", "metadata": {"name": "b"}}
    request = {"apiVersion": "nvidia.com/v1beta2", "kind": "DynamoGraphDeploymentRequest", "metadata": {"name": "r"}}
    file = written(tmp_path, budget, request)
    code, lines, _ = checked("--files-only", file)
    assert code == ExitCode.FAILED
    assert lines == [
        f"{file}: DynamoGraphPowerBudget: this platform does not have this kind: leave its objects to the operator, "
        "or remove them",
        f"{file}: DynamoGraphDeploymentRequest: this platform does not have version v1beta2: use one of v1alpha1, v1beta1",
    ]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--check", "--install"], "exclude each other"),
        (["--store", "v1alpha1", "--install"], "exclude each other"),
        (["--check", "--files-only"], "requires a file"),
        (["graph.yaml"], "require --check"),
    ],
)
def test_wrong_combinations_of_options_of_crds_are_refused(
    arguments: list[str], reason: str, dynamoctl: Dynamoctl
) -> None:
    code, _, error = dynamoctl("crds", *arguments)
    assert code == ExitCode.USAGE
    assert reason in error


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: [", "is not valid YAML"),
        ("", "it is empty; name files with manifests"),
        ("replicas: 1", "not a manifest, which is an object with apiVersion and kind; remove it"),
        ("{apiVersion: nvidia.com/v1beta1}", "not a manifest"),
        ("{apiVersion: v1, kind: ConfigMap}\n---\njust words", "document 2: not a manifest"),
    ],
)
def test_a_file_without_manifests_is_refused(text: str, said: str, tmp_path: Path, checked: Checked) -> None:
    """It was reported as a file without losses."""
    file = written_text(tmp_path, text)
    code, lines, error = checked("--files-only", file)
    assert (code, lines) == (ExitCode.FAILED, [])
    assert error.startswith(f"dynamoctl: {file}: {said}")


class Cluster(Opened):
    """A cluster with an operator's definitions: objects by version, or the error of reading a version."""

    def __init__(self, objects: dict[Resource, list[KubeObject] | KubeError], served: tuple[str, ...]) -> None:
        self._objects = objects
        self._served = served

    async def get(self, resource: Resource, key: ObjectKey) -> KubeObject:
        assert resource == CUSTOM_RESOURCE_DEFINITIONS
        if key.name != "dynamographdeployments.nvidia.com":
            raise NotFound(404, "NotFound", key.name)
        return {
            "spec": {"versions": [{"name": name, "served": name in self._served} for name in (*self._served, "v9")]}
        }

    async def list(self, resource: Resource) -> KubeObjects:
        given = self._objects.get(resource, [])
        if isinstance(given, KubeError):
            raise given
        return given


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    monkeypatch.chdir(tmp_path)  # in which no platform runs

    def use(objects: dict[Resource, Any], served: tuple[str, ...] = ("v1alpha1", "v1beta1")) -> None:
        monkeypatch.setattr(KubeClient, "open", Cluster(objects, served).open)

    return use


ALPHA, BETA = DYNAMO_GRAPH_DEPLOYMENTS.at("v1alpha1"), DYNAMO_GRAPH_DEPLOYMENTS.at("v1beta1")
ALPHA_GRAPH = {
    **graph(),
    "apiVersion": "nvidia.com/v1alpha1",
    "spec": {"services": {"w": {"componentType": "worker", "dynamoSidecar": {}}}},
}


def test_a_stored_object_is_reported_once(cluster: Any, checked: Checked) -> None:
    status = {"state": "successful", "placement": {"score": 1}}
    cluster({BETA: [{**LATER_GRAPH, "status": status}, graph(name="fine")], ALPHA: [ALPHA_GRAPH]})
    code, lines, _ = checked()
    assert code == ExitCode.FAILED
    begin = "DynamoGraphDeployment team/chat (v1beta1): "
    assert [line.removeprefix(begin).partition(" would be dropped")[0] for line in lines] == FIELDS


def test_a_field_of_only_one_version_is_reported_in_that_version(cluster: Any, checked: Checked) -> None:
    cluster({BETA: [graph()], ALPHA: [ALPHA_GRAPH]})
    code, lines, _ = checked()
    assert code == ExitCode.FAILED
    assert [line.partition(" would")[0] for line in lines] == [
        "DynamoGraphDeployment team/chat (v1alpha1): spec.services.w.dynamoSidecar"
    ]


def test_objects_that_a_graph_controls_are_not_checked(cluster: Any, checked: Checked) -> None:
    owner = {"kind": "DynamoDeployment", "name": "old", "controller": True}
    controlled = {**LATER_GRAPH, "metadata": {**LATER_GRAPH["metadata"], "ownerReferences": [owner]}}
    cluster({BETA: [controlled], ALPHA: []})
    code, lines, _ = checked()
    assert (code, lines) == (
        ExitCode.OK,
        ["no field would be lost under the definitions of this platform (objects: 0)"],
    )


def test_a_version_that_is_not_served_is_not_listed(cluster: Any, checked: Checked) -> None:
    cluster({BETA: [graph()], ALPHA: KubeError(404, "NotFound", "x")}, ("v1beta1",))
    code, lines, error = checked()
    assert (code, error) == (ExitCode.OK, "")
    assert lines == ["no field would be lost under the definitions of this platform (objects: 1)"]


def test_objects_that_the_operator_does_not_convert_are_an_error(cluster: Any, checked: Checked) -> None:
    cluster({BETA: KubeError(500, "InternalError", "conversion webhook failed"), ALPHA: []})
    code, _, error = checked()
    assert code == ExitCode.UNREACHABLE
    assert "before you stop the operator" in error


def test_files_and_the_cluster_are_checked_together(cluster: Any, tmp_path: Path, checked: Checked) -> None:
    cluster({BETA: [graph()], ALPHA: []})
    code, lines, _ = checked(written(tmp_path, graph()))
    assert (code, lines[-1]) == (
        ExitCode.OK,
        "no field would be lost under the definitions of this platform (objects: 2)",
    )


def test_the_longest_end_of_a_path_counts() -> None:
    assert what_to_do(("spec", "components", 0, "dynamoSidecar"), {}) == LATER["dynamoSidecar"]
    assert (
        what_to_do(("spec", "services", "w", "gpuMemoryService", "extraClientPods"), {})
        == LATER["gpuMemoryService.extraClientPods"]
    )
    assert what_to_do(("spec", "colour"), {}) == OTHERS


def test_fields_with_advice_are_not_in_the_definitions() -> None:
    """When a definition gets such a field, its advice and its row in docs/moving.md must be removed."""
    paths = {
        "spec.runtimeVersionOverride": ("DynamoGraphDeploymentRequest", "spec"),
        "features.kvRouter": ("DynamoGraphDeploymentRequest", "spec.features"),
        "gpuMemoryService": ("DynamoGraphDeployment", "spec.components[].experimental.gpuMemoryService"),
    }
    kinds = {definition.kind: definition.resource for definition in DEFINITIONS}
    for end in LATER:
        parent, _, name = end.rpartition(".")
        kind, path = paths.get(end) or paths.get(parent) or ("DynamoGraphDeployment", "spec.components[]")
        assert name not in at(schema_of(kinds[kind]), path)["properties"], end


def test_the_page_has_every_field() -> None:
    page = (ROOT / "docs" / "moving.md").read_text()
    table = page[page.index("## Which version") :]
    assert [end for end in LATER if end.rpartition(".")[2] not in table] == []


def test_every_kind_of_the_definitions_can_be_checked() -> None:
    assert {crd["spec"]["names"]["kind"] for crd in crd_manifests()} == set(losses._KINDS)
