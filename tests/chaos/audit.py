"""Compares writes in the API server's audit log with the holders of the claims. Pure."""

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from dynamo_shared.api.resources import ObjectKey
from dynamo_shared.leases.rendezvous import partition_of

POLICY = """apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  verbs: [get, list, watch]
- level: None
  resources: [{group: events.k8s.io}, {group: "", resources: [events]}]
- level: Metadata
  namespaces: [chaos]
"""
_WRITES = frozenset({"create", "update", "patch", "delete"})
#: Two replicas that write one object alternately within this time count as two writers. Seconds.
AT_ONCE = 2.0
#: Claims are read ten times a second; a write in progress when the claim was lost is not late. Seconds.
TOLERANCE = 0.5


@dataclass(frozen=True, slots=True)
class Write:
    """One write that the API server carried out. Times are seconds since the epoch."""

    service: str
    replica: str
    resource: str
    subresource: str
    key: ObjectKey
    began: float
    ended: float

    @property
    def object(self) -> tuple[str, str, ObjectKey]:
        """The service and the object of the write."""
        return self.service, f"{self.resource}/{self.subresource}", self.key


@dataclass(frozen=True, slots=True)
class Held:
    """A replica held a partition of a service between these times, as far as was read."""

    replica: str
    since: float
    until: float


def writes(lines: Iterable[str]) -> list[Write]:
    """The services' writes in a log, by time. An incomplete line ends the reading."""
    results = []
    for line in lines:
        try:
            entry = json.loads(line)
        except ValueError:
            break
        user, reference = entry["user"]["username"], entry.get("objectRef") or {}
        done = 200 <= (entry.get("responseStatus") or {}).get("code", 0) < 300
        if not (
            user.startswith("dynamo:") and done and entry["verb"] in _WRITES and entry["stage"] == "ResponseComplete"
        ):
            continue
        _, service, replica = user.split(":")
        results.append(
            Write(
                service,
                replica,
                reference["resource"],
                reference.get("subresource", ""),
                ObjectKey(reference.get("namespace", ""), reference.get("name", "")),
                _seconds(entry["requestReceivedTimestamp"]),
                _seconds(entry["stageTimestamp"]),
            )
        )
    return sorted(results, key=lambda write: write.began)


def two_writers(observed: Iterable[Write]) -> list[str]:
    """Objects that two replicas of a service wrote alternately."""
    by_object: dict[tuple[str, str, ObjectKey], list[Write]] = defaultdict(list)
    for write in observed:
        by_object[write.object].append(write)
    problems = []
    for (service, resource, key), each in by_object.items():
        for first, second, third in zip(each, each[1:], each[2:], strict=False):
            if first.replica == third.replica != second.replica and third.ended - first.began < AT_ONCE:
                problems.append(
                    f"{service} {first.replica}, {second.replica} and {first.replica} again wrote {resource} {key} within "
                    f"{third.ended - first.began:.2f} s"
                )
                break
    return problems


def late_writes(observed: Iterable[Write], claims: dict[tuple[str, int], list[Held]], known: list[Held]) -> list[str]:
    """Writes of the pod-builder outside the times in which its replica held the key's claim.

    `known` are the times in which claims could be read.
    """
    problems = []
    for write in observed:
        key = _task_of(write)
        if key is None or not any(each.since + TOLERANCE < write.began < each.until - TOLERANCE for each in known):
            continue
        held = claims.get((write.service, partition_of(key)), [])
        mine = [each for each in held if each.replica == write.replica]
        if not any(each.since - TOLERANCE <= write.began <= each.until + TOLERANCE for each in mine):
            holders = [
                f"{each.replica} {each.since - write.began:+.1f}..{each.until - write.began:+.1f}" for each in held
            ]
            problems.append(
                f"{write.service} {write.replica} wrote {write.resource}/{write.subresource} {write.key} without the "
                f"claim of {key}; held by {holders[-4:]}"
            )
    return problems


def _task_of(write: Write) -> ObjectKey | None:
    """The key that the pod-builder reconciles when it writes an object; None if the object alone does not show it."""
    if write.service != "pod-builder":
        return None
    if write.resource == "dynamographdeployments" or (write.resource, write.subresource) in {
        ("dynamocomponentdeployments", "status"),
        ("deployments", ""),
    }:
        return write.key
    return None


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
