import io
from pathlib import Path

import pytest
import yaml
from dynamo_ctl import cli
from dynamo_ctl.errors import ExitCode

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


def rendered(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    return [each for each in yaml.safe_load_all(capsys.readouterr().out) if each]


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_an_example_becomes_deployments_and_services(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.invoke(["render", str(file), "-n", "here"]) == ExitCode.OK
    objects = rendered(capsys)
    kinds = [obj["kind"] for obj in objects]
    components = len(yaml.safe_load(file.read_text())["spec"]["components"])
    assert kinds.count("DynamoComponentDeployment") == components
    assert kinds.count("Deployment") == components
    assert kinds.count("Service") == components
    for obj in objects:
        metadata = obj["metadata"]
        assert isinstance(metadata, dict)
        assert metadata["namespace"] == "here"
        assert "ownerReferences" not in metadata
        assert "uid" not in metadata


def test_the_first_line_says_what_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.invoke(["render", str(EXAMPLES[0])]) == ExitCode.OK
    first = capsys.readouterr().out.splitlines()[0]
    assert first.startswith("# ")
    assert "Owner references are left out" in first


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_with_grove_an_example_becomes_a_pod_clique_set(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.invoke(["render", str(file), "--grove"]) == ExitCode.OK
    sets = [obj for obj in rendered(capsys) if obj["kind"] == "PodCliqueSet"]
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
    capsys: pytest.CaptureFixture[str],
) -> None:
    if enabled is not None:
        monkeypatch.setenv("DYNAMO_ORCHESTRATORS__KAI_SCHEDULER__ENABLED", enabled)
    file = tmp_path / "graph.yaml"
    note = f"annotations: {{nvidia.com/kai-scheduler-queue: {annotation!r}}}"
    file.write_text(GRAPH.replace("{name: tiny}", f"{{name: tiny, {note}}}"))
    assert cli.invoke(["render", str(file), "--grove"]) == ExitCode.OK
    [made] = [obj for obj in rendered(capsys) if obj["kind"] == "PodCliqueSet"]
    [clique] = made["spec"]["template"]["cliques"]  # type: ignore[index]
    assert clique["spec"]["podSpec"]["schedulerName"] == "kai-scheduler"
    assert clique["labels"]["kai.scheduler/queue"] == queue


def test_standard_input_several_documents_and_other_kinds(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    other = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n"
    text = f"{GRAPH}---\n{other}---\n{GRAPH.replace('tiny', 'other')}"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert cli.invoke(["render", "-"]) == ExitCode.OK
    owners = {obj["metadata"]["labels"].get("nvidia.com/dynamo-graph-deployment-name") for obj in rendered(capsys)}  # type: ignore[index]
    assert {"tiny", "other"} <= owners


def test_a_component_on_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "dcd.yaml"
    file.write_text(
        "apiVersion: nvidia.com/v1beta1\nkind: DynamoComponentDeployment\nmetadata: {name: front, namespace: mine}\n"
        "spec: {type: frontend, podTemplate: {spec: {containers: [{name: main, image: engine}]}}}\n"
    )
    assert cli.invoke(["render", str(file)]) == ExitCode.OK
    objects = rendered(capsys)
    assert "Deployment" in {obj["kind"] for obj in objects}
    assert {obj["metadata"]["namespace"] for obj in objects} == {"mine"}  # type: ignore[index]


def test_graphs_of_one_text_are_not_taken_for_each_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What only v1alpha1 says is remembered of what is stored, and these are not."""
    graph = """
apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeployment
metadata: {name: %s}
spec:
  pvcs: [{name: models}]
  services:
    Main: {componentType: %s, extraPodSpec: {mainContainer: {image: i}}}
"""
    file = tmp_path / "graphs.yaml"
    file.write_text("---".join(graph % each for each in (("one", "frontend"), ("two", "planner"))))
    assert cli.invoke(["render", str(file)]) == ExitCode.OK
    types = [
        obj["spec"]["template"]["metadata"]["labels"]["nvidia.com/dynamo-component-type"]  # type: ignore[index]
        for obj in rendered(capsys)
        if obj["kind"] == "Deployment"
    ]
    assert types == ["frontend", "planner"]


def test_every_mistake_is_a_line_with_its_path(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good, bad = tmp_path / "a.yaml", tmp_path / "b.yaml"
    good.write_text(GRAPH)
    bad.write_text(GRAPH.replace("type: worker", "type: wroker\n      replicas: -1"))
    assert cli.invoke(["render", str(tmp_path)]) == ExitCode.FAILED
    captured = capsys.readouterr()
    assert not captured.out, "objects of the good file would be taken for all"
    lines = captured.err.splitlines()
    assert len(lines) == 2
    assert all(line.startswith(f"dynamoctl: {bad}: spec.components[0].") for line in lines)


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"\xff\xfe", "is not UTF-8"), (b"a: [", "YAML"), (b"", "no manifest found"), (b"- 1\n", "")],
)
def test_what_is_not_a_manifest_is_refused(
    content: bytes, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "odd.yaml"
    file.write_bytes(content)
    assert cli.invoke(["render", str(file)]) == ExitCode.FAILED
    error = capsys.readouterr().err
    assert str(file) in error
    assert said in error


def test_an_empty_folder_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.invoke(["render", str(tmp_path)]) == ExitCode.FAILED
    assert "holds no .yaml" in capsys.readouterr().err


def test_definitions_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.invoke(["crds"]) == ExitCode.OK
    names = {obj["metadata"]["name"] for obj in rendered(capsys)}  # type: ignore[index]
    assert {"dynamographdeployments.nvidia.com", "dynamocomponentdeployments.nvidia.com"} <= names


def test_what_admission_refuses_is_refused_with_every_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "graph.yaml"
    annotations = (
        "annotations: {nvidia.com/vllm-distributed-executor-backend: foo, nvidia.com/dynamo-autoscaling: 'X: {}'}"
    )
    order = "restart: {id: a, strategy: {type: Sequential, order: [Worker, Nope]}}"
    file.write_text(
        GRAPH.replace("{name: tiny}", f"{{name: tiny, {annotations}}}")
        .replace("  components:", f"  {order}\n  components:")
        .replace("type: worker", "type: worker\n      replicas: -1")
    )
    assert cli.invoke(["render", str(file)]) == ExitCode.FAILED
    captured = capsys.readouterr()
    assert not captured.out
    lines = [line.removeprefix(f"dynamoctl: {file}: ") for line in captured.err.splitlines()]
    assert [line.partition(": ")[0] for line in lines] == [
        "spec.components[0].replicas",
        "spec.restart.strategy.order[1]",
        'metadata.annotations["nvidia.com/vllm-distributed-executor-backend"]',
        'metadata.annotations["nvidia.com/dynamo-autoscaling"].X.maxReplicas',
        'metadata.annotations["nvidia.com/dynamo-autoscaling"].X',
    ]


def test_names_of_a_namespace_that_an_option_names_are_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "graph.yaml"
    file.write_text(GRAPH.replace("tiny", "t" * 30))
    assert cli.invoke(["render", str(file), "-n", "n" * 40]) == ExitCode.FAILED
    assert "makes the Dynamo namespace" in capsys.readouterr().err


def test_what_admission_warns_of_is_on_standard_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "graph.yaml"
    file.write_text(
        GRAPH.replace("{name: tiny}", "{name: tiny, annotations: {nvidia.com/dynamo-discovery-backend: zk}}")
    )
    assert cli.invoke(["render", str(file)]) == ExitCode.OK
    captured = capsys.readouterr()
    assert "Deployment" in captured.out
    [line] = captured.err.splitlines()
    assert line.startswith(
        'warning: DynamoGraphDeployment tiny: metadata.annotations["nvidia.com/dynamo-discovery-backend"]'
    )


def test_a_file_of_which_nothing_is_rendered_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "old.yaml"
    file.write_text(
        "apiVersion: nvidia.com/v1alpha1\nkind: DynamoDeployment\nmetadata: {name: old}\nspec: {dynamoNim: 'hello:1'}\n"
    )
    assert cli.invoke(["render", str(file)]) == ExitCode.OK
    captured = capsys.readouterr()
    assert not captured.out
    assert captured.err.splitlines()[-1].startswith(f"{file}: has no DynamoGraphDeployment")
    assert "dynamoctl convert" in captured.err
    file.write_text("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: other}\n")
    assert cli.invoke(["render", str(file)]) == ExitCode.OK
    assert capsys.readouterr().err.endswith("so nothing is rendered of it\n")


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
def test_gpus_are_claimed_by_what_any_of_the_files_has(
    orchestrator: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "graph.yaml").write_text(CLAIMING)
    (tmp_path / "template.yaml").write_text(TEMPLATE)
    assert cli.invoke(["render", str(tmp_path), *orchestrator]) == ExitCode.OK
    assert "--nnodes" in str(rendered(capsys))


def test_a_claim_that_no_file_has_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "graph.yaml"
    file.write_text(f"{CLAIMING}---\n{TEMPLATE.replace('{name: four}', '{name: four, namespace: other}')}")
    assert cli.invoke(["render", str(file)]) == ExitCode.FAILED
    assert "ResourceClaimTemplate four does not exist" in capsys.readouterr().err


def test_a_claim_that_cannot_be_read_is_named_with_its_path(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "graph.yaml"
    file.write_text(f"{CLAIMING}---\n{TEMPLATE.replace('count: 4', 'count: many')}")
    assert cli.invoke(["render", str(file)]) == ExitCode.FAILED
    [line] = capsys.readouterr().err.splitlines()
    assert "ResourceClaimTemplate" in line
    assert "spec.spec.devices.requests[0].exactly.count" in line
