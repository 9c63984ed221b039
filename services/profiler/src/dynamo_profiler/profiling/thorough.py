"""Reads the output of a thorough profiling Job: graphs in its files become v1beta1 graphs (operator behaviour, 7.6)."""

import re
from collections.abc import Mapping

from dynamo_shared.api.containers import main_container
from dynamo_shared.api.conversion import NotConvertible, convert
from dynamo_shared.api.embedded.rules.names import wrong_object_name
from dynamo_shared.api.engines import MODULE
from dynamo_shared.api.errors import InvalidManifest
from dynamo_shared.api.gpus import of_replica
from dynamo_shared.api.graph_overrides import directives
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.role_templates import all_templates, serving_template
from dynamo_shared.api.untrusted import json_text
from dynamo_shared.api.untrusted.limits import ReadLimits
from dynamo_shared.api.untrusted.yaml_text import documents
from dynamo_shared.api.v1beta1.request import Figures

from dynamo_profiler.profiling.generation.finishing import finished
from dynamo_profiler.profiling.generation.names import desired_name, graph_name
from dynamo_profiler.profiling.results import (
    DeploymentCandidate,
    ProfilingFailed,
    ProfilingRequest,
    ProfilingResult,
    Remark,
)

FINAL_CONFIG, WEB_DATA = "final_config.yaml", "webui_data.json"
_BETA = "nvidia.com/v1beta1"
_GRAPH = "DynamoGraphDeployment"
#: Column of a graph's text in the profiler's table of costs.
_GRAPH_COLUMN = 6
#: Largest number of rows to read from that table: a result holds no more graphs.
_MOST_ROWS = 64
#: Limits of one file of the output, and of one graph in it: a ConfigMap has at most 1 MiB.
_OUTPUT = ReadLimits(1 << 20, 20_000, 64)
_WORKERS = ("worker", "prefill", "decode")
_NO_DIRECTIVES = (
    "spec.overrides.dgd has $patch, which the profiler of spec.image does not support and left in its graph: use an image "
    "of Dynamo 1.5 or newer, or write all arguments without $patch"
)
_COMMAND = re.compile(rf"{MODULE}\b")


def read_output(request: ProfilingRequest, data: Mapping[str, str]) -> ProfilingResult:
    """The result in the data of a Job's output ConfigMap. Raises ProfilingFailed with the errors of an invalid result.

    In final_config.yaml the last graph counts. Its ConfigMaps are included; other documents are dropped and reported.
    webui_data.json has further graphs for the Pareto front; it may be missing or unreadable.
    """
    everything = _documents(data.get(FINAL_CONFIG, ""))
    graphs = [each for each in everything if each.get("kind") == _GRAPH]
    if not graphs:
        raise ProfilingFailed(
            "GenerationFailed", f"{FINAL_CONFIG} of the profiling Job has no {_GRAPH}; see the Job's log"
        )
    maps = tuple(_config_map(each, request) for each in everything if each.get("kind") == "ConfigMap")
    others = sorted({str(each.get("kind")) for each in everything} - {_GRAPH, "ConfigMap"})
    remarks = [
        Remark(reason="ObjectsLeftOut", message=f"{FINAL_CONFIG} has {', '.join(others)}; only ConfigMaps are created")
    ]
    selected = _candidate(graphs[-1], request, maps)
    pareto = [selected]
    for text in _rows(data.get(WEB_DATA, "")):
        try:
            candidate = _candidate(_documents(text)[-1], request, ())
        except (ProfilingFailed, IndexError):
            continue
        if all(candidate.dgd != known.dgd for known in pareto):
            pareto.append(candidate)
    return ProfilingResult(
        selected=selected,
        pareto=tuple(pareto),
        remarks=tuple(remarks) if others else (),
        source="thorough",
    )


def _documents(text: str) -> list[KubeObject]:
    try:
        return [each for each in documents(text, _OUTPUT) if isinstance(each, dict)]
    except InvalidManifest as error:
        raise ProfilingFailed("GenerationFailed", f"{FINAL_CONFIG} of the profiling job: {error}") from error


def _candidate(graph: KubeObject, request: ProfilingRequest, maps: tuple[KubeObject, ...]) -> DeploymentCandidate:
    _metadata(graph)  # Before the conversion, which replaces metadata that is not an object.
    try:
        made = dict(convert(graph, _BETA))
    except NotConvertible as error:
        raise ProfilingFailed("GenerationFailed", f"the graph of the profiling job cannot be read: {error}") from error
    components = [each for each in (made.get("spec") or {}).get("components") or [] if isinstance(each, dict)]
    workers = [each for each in components if each.get("type") in _WORKERS]
    if not workers:
        raise ProfilingFailed("GenerationFailed", "the graph of the profiling Job has no workers; see the Job's log")
    names = [(str(each.get("name")), bool(each.get("multinode"))) for each in components]
    kept = _metadata(made, "labels", "annotations")
    name = graph_name(request.name, desired_name(request.spec), names)
    made["metadata"] = {**_with_overrides(kept, request), "name": name, "namespace": request.namespace}
    if any(directives(made)):
        raise ProfilingFailed("InvalidOverride", _NO_DIRECTIVES)
    mains = [main for worker in workers for template in all_templates(worker) if (main := main_container(template))]
    for main in mains if request.workers_image else ():
        main["image"] = request.workers_image
    # Profilers before Dynamo 1.5 do not know kvRouter.
    made = finished(made, request.spec)
    sizes = {_role(each): _sizes(each) for each in workers}
    figures = Figures(
        backend=_backend(made, workers, request),
        serving="disagg" if "prefill" in sizes else "agg",
        gpus=sum(size["gpus"] * size["replicas"] for size in sizes.values()),
    )
    return DeploymentCandidate(figures=figures, parallelism=sizes, dgd=made, config_maps=maps)


def _with_overrides(metadata: KubeObject, request: ProfilingRequest) -> KubeObject:
    """Labels and annotations, with the request's override having priority: the profiler handles only specs."""
    override = request.spec.overrides.dgd if request.spec.overrides else None
    given = override.get("metadata") if override else None
    if not isinstance(given, dict):
        return metadata
    kinds = [each for each in ("labels", "annotations") if isinstance(given.get(each), dict)]
    return {**metadata, **{each: {**(metadata.get(each) or {}), **given[each]} for each in kinds}}


def _role(component: KubeObject) -> str:
    kind, name = component.get("type"), str(component.get("name", "")).lower()
    if kind in ("prefill", "decode"):
        return str(kind)
    return "prefill" if "prefill" in name else "decode" if "decode" in name else "agg"


def _sizes(component: KubeObject) -> dict[str, int]:
    """Replicas, and GPUs of one replica. The flags of engines are the profiler's, and are not read."""
    replicas = component.get("replicas")
    return {"replicas": replicas if isinstance(replicas, int) else 1, "gpus": of_replica(component).own}


def _backend(graph: KubeObject, workers: list[KubeObject], request: ProfilingRequest) -> str:
    stated = (graph.get("spec") or {}).get("backendFramework")
    if stated:
        return str(stated)
    for worker in workers:
        main = main_container(serving_template(worker)) or {}
        command_line = " ".join(map(str, (*(main.get("command") or []), *(main.get("args") or []))))
        if match := _COMMAND.search(command_line):
            return match[1]
    return request.spec.backend


def _config_map(given: KubeObject, request: ProfilingRequest) -> KubeObject:
    """The ConfigMap in the request's namespace, even if its author named another one."""
    metadata = _metadata(given, "name", "labels", "annotations")
    name = metadata.get("name")
    if not isinstance(name, str) or not name or wrong_object_name(name):
        raise ProfilingFailed(
            "GenerationFailed", f"{FINAL_CONFIG} of the profiling job has a ConfigMap without a valid name"
        )
    if not all(isinstance(metadata[each] or {}, dict) for each in ("labels", "annotations") if each in metadata):
        raise ProfilingFailed(
            "GenerationFailed",
            f"{FINAL_CONFIG} of the profiling job has a ConfigMap whose labels or annotations are not an object",
        )
    return {**given, "apiVersion": "v1", "metadata": {**metadata, "namespace": request.namespace}}


def _metadata(given: KubeObject, *fields: str) -> KubeObject:
    metadata = given.get("metadata") or {}
    if not isinstance(metadata, dict):
        raise ProfilingFailed(
            "GenerationFailed",
            f"{FINAL_CONFIG} of the profiling job has a {given.get('kind')} whose metadata is not an object",
        )
    return {key: metadata[key] for key in fields if key in metadata}


def _rows(text: str) -> list[str]:
    """Texts of graphs in the profiler's table of costs, without comments; empty if the table has another format."""
    try:
        rows = json_text.decode(text, _OUTPUT)["cost"]["table"]["data"] if text else []
        texts = [row[_GRAPH_COLUMN] for row in rows[:_MOST_ROWS] if len(row) > _GRAPH_COLUMN]
    except (ValueError, TypeError, KeyError):
        return []
    kept = (
        "\n".join(line for line in each.splitlines() if not line.startswith("#"))
        for each in texts
        if isinstance(each, str)
    )
    return list(kept)
