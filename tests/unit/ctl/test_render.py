import io
from pathlib import Path

import pytest
import yaml
from dynamo_ctl.errors import ExitCode

from tests.unit.ctl.command_line import Dynamoctl, written

EXAMPLES = sorted((Path(__file__).parents[3] / "examples").glob("*.yaml"))
GRAPH = """
apiVersion: nvidia.com/v1beta1
kind: DynamoGraphDeployment
metadata: {name: tiny}
spec:
  backendFramework: vllm
  components:
    - name: Worker
      type: worker
      podTemplate: {spec: {containers: [{name: main, image: engine, command: [python3, -m, dynamo.vllm]}]}}
"""


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_an_example_becomes_deployments_and_services(file: Path, dynamoctl: Dynamoctl) -> None:
    objects = dynamoctl("render", file, "-n", "here").objects
    kinds = [obj["kind"] for obj in objects]
    components = len(yaml.safe_load(file.read_text())["spec"]["components"])
    assert kinds.count("DynamoComponentDeployment") == components
    assert kinds.count("Deployment") == components
    assert kinds.count("Service") == components
    for obj in objects:
        metadata = obj["metadata"]
        assert metadata["namespace"] == "here"
        assert "ownerReferences" not in metadata
        assert "uid" not in metadata


def test_the_first_line_explains_missing_owner_references(dynamoctl: Dynamoctl) -> None:
    first = dynamoctl("render", EXAMPLES[0]).out.splitlines()[0]
    assert first.startswith("# ")
    assert "without owner references" in first


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_with_grove_an_example_becomes_a_pod_clique_set(file: Path, dynamoctl: Dynamoctl) -> None:
    sets = [obj for obj in dynamoctl("render", file, "--grove").objects if obj["kind"] == "PodCliqueSet"]
    assert len(sets) == 1
    assert "schedulerName" not in str(sets)


@pytest.mark.parametrize(
    ("annotation", "enabled", "queue"),
    [("team-a", None, "team-a"), ("", "true", "dynamo"), ("team-a", "true", "team-a")],
)
def test_a_queue_of_kai_is_taken_to_exist(
    annotation: str,
    enabled: str | None,
    queue: str,
    *,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    dynamoctl: Dynamoctl,
) -> None:
    if enabled is not None:
        monkeypatch.setenv("DYNAMO_ORCHESTRATORS__KAI_SCHEDULER__ENABLED", enabled)
    note = f"annotations: {{nvidia.com/kai-scheduler-queue: {annotation!r}}}"
    file = written(tmp_path, GRAPH.replace("{name: tiny}", f"{{name: tiny, {note}}}"))
    [made] = [obj for obj in dynamoctl("render", file, "--grove").objects if obj["kind"] == "PodCliqueSet"]
    [clique] = made["spec"]["template"]["cliques"]
    assert clique["spec"]["podSpec"]["schedulerName"] == "kai-scheduler"
    assert clique["labels"]["kai.scheduler/queue"] == queue


def test_standard_input_several_documents_and_other_kinds(
    monkeypatch: pytest.MonkeyPatch, dynamoctl: Dynamoctl
) -> None:
    other = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n"
    text = f"{GRAPH}---\n{other}---\n{GRAPH.replace('tiny', 'other')}"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    objects = dynamoctl("render", "-").objects
    owners = {obj["metadata"]["labels"].get("nvidia.com/dynamo-graph-deployment-name") for obj in objects}
    assert {"tiny", "other"} <= owners


def test_a_component_on_its_own(tmp_path: Path, dynamoctl: Dynamoctl) -> None:
    file = written(
        tmp_path,
        "apiVersion: nvidia.com/v1beta1\nkind: DynamoComponentDeployment\nmetadata: {name: front, namespace: mine}\n"
        "spec: {type: frontend, podTemplate: {spec: {containers: [{name: main, image: engine}]}}}\n",
    )
    objects = dynamoctl("render", file).objects
    assert "Deployment" in {obj["kind"] for obj in objects}
    assert {obj["metadata"]["namespace"] for obj in objects} == {"mine"}


def test_graphs_of_one_text_are_not_confused(tmp_path: Path, dynamoctl: Dynamoctl) -> None:
    """Fields of v1alpha1 are cached by uid and generation, which manifests do not have."""
    graph = """
apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeployment
metadata: {name: %s}
spec:
  pvcs: [{name: models}]
  services:
    Main: {componentType: %s, extraPodSpec: {mainContainer: {image: i}}}
"""
    file = written(tmp_path, "---".join(graph % each for each in (("one", "frontend"), ("two", "planner"))))
    types = [
        obj["spec"]["template"]["metadata"]["labels"]["nvidia.com/dynamo-component-type"]
        for obj in dynamoctl("render", file).objects
        if obj["kind"] == "Deployment"
    ]
    assert types == ["frontend", "planner"]


def test_every_mistake_is_a_line_with_its_path(tmp_path: Path, dynamoctl: Dynamoctl) -> None:
    written(tmp_path, GRAPH, "a.yaml")
    bad = written(tmp_path, GRAPH.replace("type: worker", "type: wroker\n      replicas: -1"), "b.yaml")
    code, out, err = dynamoctl("render", tmp_path)
    assert code == ExitCode.FAILED
    assert not out, "objects of the good file would be taken for all"
    lines = err.splitlines()
    assert len(lines) == 2
    assert all(line.startswith(f"dynamoctl: {bad}: spec.components[0].") for line in lines)


@pytest.mark.parametrize(
    ("field", "path"),
    [
        ("resources: {limts: {}}", "resources.limts"),
        ("resources: {limits: {gpu: 1}}", "resources.limits.gpu"),
        ("args: text", "args"),
        ("readinessProbe: {httpGet: {port: '70000'}}", "readinessProbe.httpGet.port"),
    ],
)
def test_pod_templates_are_checked_without_a_cluster(
    field: str, path: str, tmp_path: Path, dynamoctl: Dynamoctl
) -> None:
    bad = written(tmp_path, GRAPH.replace("image: engine", f"image: engine, {field}"))
    code, _, error = dynamoctl("render", bad)
    assert code == ExitCode.FAILED
    assert error.count("\n") == 1
    assert error.startswith(f"dynamoctl: {bad}: spec.components[0].podTemplate.spec.containers[0].{path}: ")


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"\xff\xfe", "is not UTF-8"), (b"a: [", "YAML"), (b"", "it holds no manifest"), (b"- 1\n", "")],
)
def test_other_objects_than_manifests_are_refused(
    content: bytes, said: str, tmp_path: Path, dynamoctl: Dynamoctl
) -> None:
    file = tmp_path / "odd.yaml"
    file.write_bytes(content)
    code, _, error = dynamoctl("render", file)
    assert code == ExitCode.FAILED
    assert str(file) in error
    assert said in error


def test_an_empty_folder_is_refused(tmp_path: Path, dynamoctl: Dynamoctl) -> None:
    code, _, error = dynamoctl("render", tmp_path)
    assert code == ExitCode.FAILED
    assert "has no .yaml" in error


def test_definitions_are_printed(dynamoctl: Dynamoctl) -> None:
    names = {obj["metadata"]["name"] for obj in dynamoctl("crds").objects}
    assert {"dynamographdeployments.nvidia.com", "dynamocomponentdeployments.nvidia.com"} <= names


def test_errors_of_admission_are_printed_line_by_line(tmp_path: Path, dynamoctl: Dynamoctl) -> None:
    annotations = (
        "annotations: {nvidia.com/vllm-distributed-executor-backend: foo, nvidia.com/dynamo-autoscaling: 'X: {}'}"
    )
    order = "restart: {id: a, strategy: {type: Sequential, order: [Worker, Nope]}}"
    file = written(
        tmp_path,
        GRAPH.replace("{name: tiny}", f"{{name: tiny, {annotations}}}")
        .replace("  components:", f"  {order}\n  components:")
        .replace("type: worker", "type: worker\n      replicas: -1"),
    )
    code, out, err = dynamoctl("render", file)
    assert (code, out) == (ExitCode.FAILED, "")
    lines = [line.removeprefix(f"dynamoctl: {file}: ") for line in err.splitlines()]
    assert [line.partition(": ")[0] for line in lines] == [
        "spec.components[0].replicas",
        "spec.restart.strategy.order[1]",
        'metadata.annotations["nvidia.com/vllm-distributed-executor-backend"]',
        'metadata.annotations["nvidia.com/dynamo-autoscaling"].X.maxReplicas',
        'metadata.annotations["nvidia.com/dynamo-autoscaling"].X',
    ]


def test_names_of_a_namespace_that_an_option_names_are_checked(tmp_path: Path, dynamoctl: Dynamoctl) -> None:
    code, _, error = dynamoctl("render", written(tmp_path, GRAPH.replace("tiny", "t" * 30)), "-n", "n" * 40)
    assert code == ExitCode.FAILED
    assert "results in the Dynamo namespace" in error


def test_warnings_of_admission_are_on_standard_error(tmp_path: Path, dynamoctl: Dynamoctl) -> None:
    annotated = GRAPH.replace("{name: tiny}", "{name: tiny, annotations: {nvidia.com/dynamo-discovery-backend: zk}}")
    code, out, err = dynamoctl("render", written(tmp_path, annotated))
    assert code == ExitCode.OK
    assert "Deployment" in out
    [line] = err.splitlines()
    assert line.startswith(
        'warning: DynamoGraphDeployment tiny: metadata.annotations["nvidia.com/dynamo-discovery-backend"]'
    )


OLD = "apiVersion: nvidia.com/v1alpha1\nkind: DynamoDeployment\nmetadata: {name: old}\nspec: {dynamoNim: 'hello:1'}\n"
OTHER = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: other}\n"


@pytest.mark.parametrize(
    ("text", "end"), [(OLD, "manifests of earlier kinds into graphs\n"), (OTHER, "nothing to render\n")]
)
def test_a_file_of_which_nothing_is_rendered_is_named(
    text: str, end: str, tmp_path: Path, dynamoctl: Dynamoctl
) -> None:
    file = written(tmp_path, text)
    code, out, err = dynamoctl("render", file)
    assert (code, out) == (ExitCode.OK, "")
    assert err.splitlines()[-1].startswith(f"{file}: has no DynamoGraphDeployment")
    assert err.endswith(end)


CLAIMING = """
apiVersion: nvidia.com/v1beta1
kind: DynamoGraphDeployment
metadata: {name: wide}
spec:
  backendFramework: vllm
  components:
    - name: Worker
      type: worker
      multinode: {nodeCount: 2}
      podTemplate:
        spec:
          resourceClaims: [{name: gpus, resourceClaimTemplateName: four}]
          containers:
            - name: main
              image: engine
              command: [python3, -m, dynamo.vllm]
              args: [--tensor-parallel-size, "8"]
              resources: {claims: [{name: gpus}]}
"""
TEMPLATE = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: four}
spec: {spec: {devices: {requests: [{name: gpus, exactly: {deviceClassName: gpu.nvidia.com, count: 4}}]}}}
"""


@pytest.mark.parametrize("orchestrator", [[], ["--grove"]], ids=["LeaderWorkerSet", "Grove"])
def test_claims_of_all_files_count(orchestrator: list[str], tmp_path: Path, dynamoctl: Dynamoctl) -> None:
    written(tmp_path, CLAIMING)
    written(tmp_path, TEMPLATE, "template.yaml")
    assert "--nnodes" in str(dynamoctl("render", tmp_path, *orchestrator).objects)


def test_a_claim_that_no_file_has_is_named(tmp_path: Path, dynamoctl: Dynamoctl) -> None:
    elsewhere = TEMPLATE.replace("{name: four}", "{name: four, namespace: other}")
    code, _, error = dynamoctl("render", written(tmp_path, f"{CLAIMING}---\n{elsewhere}"))
    assert code == ExitCode.FAILED
    assert "ResourceClaimTemplate four does not exist" in error


def test_a_claim_that_cannot_be_read_is_named_with_its_path(tmp_path: Path, dynamoctl: Dynamoctl) -> None:
    code, _, error = dynamoctl(
        "render", written(tmp_path, f"{CLAIMING}---\n{TEMPLATE.replace('count: 4', 'count: many')}")
    )
    assert code == ExitCode.FAILED
    [line] = error.splitlines()
    assert "ResourceClaimTemplate" in line
    assert "spec.spec.devices.requests[0].exactly.count" in line
