"""`dynamoctl dgdr`: Pareto fronts as text, images and pages."""

from pathlib import Path
from typing import Any, Self

import pytest
from dynamo_ctl.commands.dgdr import points
from dynamo_ctl.commands.dgdr.drawing import Drawn, save, terminal
from dynamo_ctl.errors import CtlError
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry.annotations import PLANNER_CONFIG
from dynamo_shared.api.request_graphs import graph_of, points_of, why_not_changed
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENT_REQUESTS, DYNAMO_GRAPH_DEPLOYMENTS, Resource

from tests.building.memory_kube import MemoryKube
from tests.building.opened import Opened

LATER = "kubectl get dgdr qwen -n ns -w shows when it is Ready"


def figures(user: float, gpu: float, **more: Any) -> dict[str, Any]:
    return {
        "backend": "vllm",
        "serving": "disagg",
        "gpus": 16,
        "meetsSLA": True,
        "ttft": 429.5,
        "itl": 1000 / user,
        "tokensPerSecondPerUser": user,
        "tokensPerSecondPerGPU": gpu,
        "requestsPerSecond": 11.2,
        **more,
    }


def drawn() -> Drawn:
    pareto = [
        {"config": {"name": "a"}, "figures": figures(63, 698)},
        {"config": {"name": "b"}, "figures": figures(126, 300, serving="agg")},
        {"config": {"name": "c"}, "figures": figures(30, 900, meetsSLA=False)},
    ]
    return Drawn("Qwen/Qwen3-32B on 16 x h200_sxm", points_of(pareto, {"name": "a"}, {}))


def test_the_drawing_has_each_point_at_its_position():
    lines = terminal(drawn(), 78)
    canvas = [line.partition("|")[2] for line in lines if "|" in line]
    results = {mark: (row, line.index(mark)) for mark in "*23" for row, line in enumerate(canvas) if mark in line}
    assert results["3"][0] == 0
    assert results["3"][0] < results["*"][0] < results["2"][0]
    assert results["3"][1] < results["*"][1] < results["2"][1]
    assert max(map(len, lines[: len(canvas) + 4])) <= 78


def test_the_table_has_the_figures():
    table = "\n".join(terminal(drawn(), 78))
    assert "1*   vllm" in table
    assert "429.5" in table
    assert "698.0" in table
    assert [line.split()[-1] for line in table.splitlines()[-3:]] == ["yes", "yes", "no"]


def test_the_table_has_the_letters_of_the_drawing():
    lines = terminal(Drawn("m", [{"figures": figures(n, 100 - n), "selected": n == 1} for n in range(1, 13)]), 78)
    assert [line.split()[:2] for line in lines[-4:]] == [["9", "vllm"], ["10", "a"], ["11", "b"], ["12", "c"]]
    assert any("a" in line.partition("|")[2] for line in lines)


def test_a_selected_graph_that_is_not_of_the_front_is_its_first():
    points = points_of([{"config": {"name": "b"}, "figures": figures(1, 1)}], {"name": "a"}, figures(2, 2))
    assert [(point["config"]["name"], point["selected"]) for point in points] == [("a", True), ("b", False)]


def test_without_figures_the_table_is_still_printed():
    only = Drawn("m", points_of([], {"name": "a"}, {"backend": "vllm", "gpus": 4}))
    lines = terminal(only, 78)
    assert "no figures are available" in lines[2]
    assert lines[-1].split()[:2] == ["1*", "vllm"]


@pytest.mark.parametrize(("name", "begins"), [("front.png", b"\x89PNG"), ("front.html", b"<!doctype html>")])
def test_a_drawing_is_written_as_an_image_or_as_a_page(tmp_path: Path, name: str, begins: bytes):
    save(drawn(), tmp_path / name)
    content = (tmp_path / name).read_bytes()
    assert content.startswith(begins)
    if name.endswith("html"):
        assert b"tokens\\u002fs\\u002fuser" in content
        assert b'src="http' not in content


def test_a_result_without_figures_is_not_drawn_into_a_file(tmp_path: Path):
    with pytest.raises(CtlError, match="nothing to draw"):
        save(Drawn("m", points_of([], {"name": "a"}, {})), tmp_path / "front.png")


def test_a_name_is_neither_a_formula_nor_html(tmp_path: Path):
    title = r"acme/<b>$\frac{x}$"
    for name in ("front.png", "front.html"):
        save(Drawn(title, drawn().points), tmp_path / name)
    assert "acme/<b>" not in (tmp_path / "front.html").read_text()


def test_a_drawing_in_a_missing_folder_is_reported(tmp_path: Path):
    with pytest.raises(CtlError, match=r"front\.png: No such file"):
        save(drawn(), tmp_path / "nowhere" / "front.png")


def test_a_graph_is_not_replaced_by_one_with_other_components() -> None:
    def graph(*names: str) -> dict[str, object]:
        return {
            "metadata": {"name": "q-dgd", "namespace": "team"},
            "spec": {"components": [{"name": each} for each in names]},
        }

    split, whole = graph("Frontend", "prefill", "decode"), graph("Frontend", "worker")
    assert not why_not_changed(split, graph("decode", "prefill", "Frontend"))
    assert why_not_changed(split, whole) == (
        "the point has other components (Frontend, worker) than DynamoGraphDeployment q-dgd (Frontend, prefill, decode), "
        "and those of a graph cannot change: delete it (kubectl delete dgd q-dgd -n team), and deploy the point again"
    )


@pytest.mark.parametrize(
    ("status", "message"),
    [
        ({}, f"request qwen has no result yet; its phase is Pending; {LATER}"),
        ({"phase": "Profiling"}, f"request qwen has no result yet; its phase is Profiling; {LATER}"),
        (
            {"phase": "Failed", "conditions": [{"type": "Succeeded", "status": "False", "message": "no GPU fits"}]},
            "request qwen failed: no GPU fits",
        ),
        ({"phase": "Failed"}, "request qwen failed: see kubectl describe dgdr qwen -n ns"),
    ],
)
def test_a_request_without_a_result_says_why(status: dict[str, Any], message: str) -> None:
    request = {"metadata": {"name": "qwen", "namespace": "ns"}, "spec": {"model": "m"}, "status": status}
    with pytest.raises(CtlError) as refused:
        points.plot(request, print, file=None, width=78)
    assert str(refused.value) == message


SELECTED, OTHER = (
    {**DYNAMO_GRAPH_DEPLOYMENTS.type_meta, "metadata": {"name": "q-dgd"}, "spec": {"backendFramework": each}}
    for each in ("vllm", "sglang")
)
REQUEST = {
    **DYNAMO_GRAPH_DEPLOYMENT_REQUESTS.type_meta,
    "metadata": {"name": "q", "namespace": "ns", "uid": "u-1"},
    "status": {"profilingResults": {"selectedConfig": SELECTED, "pareto": [{"config": SELECTED}, {"config": OTHER}]}},
}


class Cluster(Opened, MemoryKube):
    """The cluster to which a command connects."""

    namespace = "ns"

    async def client(self) -> Self:
        return self

    async def replace(self, resource: Resource, obj: KubeObject, *, dry_run: bool = False) -> None:
        if not dry_run:
            self.writes.append(f"replace {resource.kind} {obj['metadata']['name']}")
            self.put(obj)


@pytest.mark.parametrize(
    ("existing", "number", "dry_run", "says", "framework"),
    [
        (None, None, False, "q-dgd created in namespace ns", "vllm"),
        (None, 2, False, "q-dgd created in namespace ns", "sglang"),
        ("u-1", 2, False, "q-dgd changed in namespace ns", "sglang"),
        ("u-1", 2, True, "backendFramework: sglang", "trtllm"),
        (None, 1, True, "backendFramework: vllm", None),
        ("u-0", None, False, "exists, and was not created for this request", "trtllm"),
        (None, 3, False, "--point 3: the result has 2 points; see dynamoctl dgdr plot q", None),
    ],
)
async def test_a_point_becomes_the_graph_of_its_request(
    existing: str | None, number: int | None, dry_run: bool, says: str, framework: str | None
) -> None:
    cluster = Cluster(REQUEST)
    if existing is not None:
        earlier = {**REQUEST, "metadata": {**REQUEST["metadata"], "uid": existing}}
        cluster.put(graph_of(earlier, {**SELECTED, "spec": {"backendFramework": "trtllm"}}))
    where: Any = cluster
    out: list[str] = []
    try:
        await points.apply(where, "q", None, number, out.append, remark=out.append, dry_run=dry_run)
    except CtlError as error:
        out.append(str(error))
    assert says in "\n".join(out)
    assert [each["spec"]["backendFramework"] for each in cluster.stored(DYNAMO_GRAPH_DEPLOYMENTS)] == (
        [framework] if framework else []
    )


async def test_a_note_about_the_planner_is_not_a_result() -> None:
    """It was on standard output, which is for results."""
    selected = {**SELECTED, "metadata": {**SELECTED["metadata"], "annotations": {PLANNER_CONFIG: "planner-q"}}}
    results = {**REQUEST["status"]["profilingResults"], "selectedConfig": selected}
    where: Any = Cluster({**REQUEST, "status": {**REQUEST["status"], "profilingResults": results}})
    out, remarks = list[str](), list[str]()
    await points.apply(where, "q", None, None, out.append, remark=remarks.append, dry_run=False)
    assert out == ["DynamoGraphDeployment q-dgd created in namespace ns"]
    assert [each.partition(",")[0] for each in remarks] == ["note: the graph's PlannerConfig is in ConfigMap planner-q"]


async def test_a_missing_request_is_named() -> None:
    where: Any = Cluster(REQUEST)
    with pytest.raises(CtlError, match="no DynamoGraphDeploymentRequest 'other' in namespace ns"):
        await points.read(where, "other", None)
