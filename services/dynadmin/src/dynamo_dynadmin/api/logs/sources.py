"""Containers whose logs are read, and their starts: each start of a container has a separate log. Pure."""

from collections.abc import Container, Mapping, Sequence
from typing import NamedTuple

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.pods import unschedulable
from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import ObjectKey

_INIT = "initContainers"
#: Why a container that KWOK simulates has no log.
SIMULATED = "pods on simulated nodes have no logs"


class LogSelection(NamedTuple):
    """The containers that a caller reads; an empty field selects all."""

    component: str = ""
    pod: str = ""
    container: str = ""

    def includes(self, name: str, pod_labels: Mapping[str, str]) -> bool:
        """Whether containers of a pod may be selected."""
        return self.pod in ("", name) and self.component in ("", pod_labels.get(labels.COMPONENT, ""))


class LogSource(NamedTuple):
    """A container whose log is read."""

    pod: ObjectKey
    container: str
    component: str


class ContainerStart(NamedTuple):
    """One start of a container. `reason`: why it has no log, for example because it has not started yet; otherwise
    empty.

    `runs`: whether it runs. Apart from this field, a start stays equal when its container ends.
    """

    source: LogSource
    uid: str
    restarts: int
    reason: str = ""
    is_init: bool = False
    runs: bool = False


def is_simulated(node: KubeObject) -> bool:
    """Whether KWOK simulates a node: no kubelet answers for its pods."""
    return (node["metadata"].get("annotations") or {}).get("kwok.x-k8s.io/node") == "fake"


def starts(pods: Sequence[KubeObject], selection: LogSelection, simulated: Container[str] = ()) -> list[ContainerStart]:
    """The latest start of each selected container; init containers, including sidecars of that type, come last.

    `simulated`: names of simulated nodes.
    """
    return [
        _start(pod, LogSource(key, name, component), simulated, is_init=part == _INIT)
        for part in ("containers", _INIT)
        for pod in pods
        for key, component in [_names(pod)]
        for name in [str(each.get("name") or "") for each in (pod.get("spec") or {}).get(part) or ()]
        if selection.component in ("", component) and selection.pod in ("", key.name)
        if selection.container in ("", name)
    ]


def _names(pod: KubeObject) -> tuple[ObjectKey, str]:
    metadata = pod["metadata"]
    key = ObjectKey(metadata["namespace"], metadata["name"])
    return key, str((metadata.get("labels") or {}).get(labels.COMPONENT) or "")


def _start(pod: KubeObject, source: LogSource, simulated: Container[str], *, is_init: bool) -> ContainerStart:
    reported = pod.get("status") or {}
    statuses = reported.get("initContainerStatuses" if is_init else "containerStatuses") or ()
    status: KubeObject = next((each for each in statuses if each.get("name") == source.container), {})
    state, before = status.get("state") or {}, status.get("lastState") or {}
    reason = ""
    if not any(each.get(name) for each in (state, before) for name in ("running", "terminated")):
        reason = str((state.get("waiting") or {}).get("reason") or reported.get("phase") or "Pending")
        if (scheduled := unschedulable(pod)) is not None:
            reason = f"{reason}: {scheduled.get('message', '')}"[:1000]
    elif (pod.get("spec") or {}).get("nodeName") in simulated:
        reason = SIMULATED
    uid, restarts = str(pod["metadata"].get("uid") or ""), int(status.get("restartCount") or 0)
    return ContainerStart(source, uid, restarts, reason, is_init, bool(state.get("running")))
