"""Containers whose logs are read, and their starts: each start of a container has a log of its own. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import ObjectKey


class LogSelection(NamedTuple):
    """Which containers a caller reads; an empty field leaves nothing out."""

    component: str = ""
    pod: str = ""
    container: str = ""


class LogSource(NamedTuple):
    """A container whose log is read."""

    pod: ObjectKey
    container: str
    component: str


class ContainerStart(NamedTuple):
    """One start of a container. `reason` says why it has not started yet; it is empty if the start has a log."""

    source: LogSource
    uid: str
    restarts: int
    reason: str = ""


def chosen(pods: Iterable[KubeObject], choice: LogSelection) -> list[LogSource]:
    """The containers of a choice."""
    return [source for _, source in _each(pods, choice)]


def starts(pods: Iterable[KubeObject], choice: LogSelection) -> list[ContainerStart]:
    """The latest start of each container of a choice."""
    return [_start(pod, source) for pod, source in _each(pods, choice)]


def _each(pods: Iterable[KubeObject], choice: LogSelection) -> Iterator[tuple[KubeObject, LogSource]]:
    for pod in pods:
        metadata = pod["metadata"]
        component = str((metadata.get("labels") or {}).get(labels.COMPONENT) or "")
        if choice.component not in ("", component) or choice.pod not in ("", metadata["name"]):
            continue
        key = ObjectKey(metadata["namespace"], metadata["name"])
        for each in (pod.get("spec") or {}).get("containers") or ():
            name = str(each.get("name") or "")
            if choice.container in ("", name):
                yield pod, LogSource(key, name, component)


def _start(pod: KubeObject, source: LogSource) -> ContainerStart:
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    status: KubeObject = next((each for each in statuses if each.get("name") == source.container), {})
    state, before = status.get("state") or {}, status.get("lastState") or {}
    reason = ""
    if not any(each.get(name) for each in (state, before) for name in ("running", "terminated")):
        reason = str((state.get("waiting") or {}).get("reason") or (pod.get("status") or {}).get("phase") or "Pending")
    return ContainerStart(source, str(pod["metadata"].get("uid") or ""), int(status.get("restartCount") or 0), reason)
