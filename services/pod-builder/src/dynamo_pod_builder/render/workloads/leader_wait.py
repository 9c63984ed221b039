"""Waiting for a group's leader before an engine starts: the script, its ConfigMap, and the container that runs it."""

from importlib import resources as files

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import CONFIG_MAPS
from dynamo_shared.api.v1beta1 import DynamoGraphDeployment

from dynamo_pod_builder.render import names
from dynamo_pod_builder.render.metadata import new_object_of
from dynamo_pod_builder.render.pod.confinement import confined_like
from dynamo_pod_builder.render.pod.placement import Group

FILE = "wait-for-leader.py"
_VOLUME = "wait-leader-script"
_FOLDER = "/scripts"
_SCRIPT = (
    files.files("dynamo_pod_builder.render.workloads").joinpath("scripts", "wait_for_leader.py").read_text("utf-8")
)


def script(graph: DynamoGraphDeployment) -> KubeObject:
    """ConfigMap with the script, one per graph."""
    name = graph.metadata.name
    label_set = {labels.GRAPH_DEPLOYMENT_NAME: name}
    return new_object_of(graph, CONFIG_MAPS, names.wait_script(name), label_set, data={FILE: _SCRIPT})


def for_leader(
    pod: KubeObject, graph: str, main: KubeObject, group: Group, port: int, *, how: str, resources: KubeObject
) -> None:
    """Add the waiting container as the last init container of a worker; it uses the engine's image, which has Python.

    The name of the container includes `how` the nodes meet at the port.
    """
    # The shell replaces these variables with the container's own, including those that Kubernetes does not know.
    host = group.leader_host.replace("$(", "${").replace(")", "}")
    command = f'export LEADER_HOST="{host}" LEADER_PORT="{port}" && exec python3 {_FOLDER}/{FILE}'
    container = {
        "name": f"wait-for-leader-{how}",
        "image": main["image"],
        "command": ["sh", "-c", command],
        "resources": resources,
        **confined_like(main),
        "volumeMounts": [{"name": _VOLUME, "mountPath": _FOLDER, "readOnly": True}],
    }
    pod["initContainers"] = [*pod.get("initContainers", ()), container]
    pod["volumes"] = [*pod.get("volumes", ()), {"name": _VOLUME, "configMap": {"name": names.wait_script(graph)}}]
