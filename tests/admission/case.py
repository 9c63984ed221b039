"""Admission cases: invalid manifests, each with the exact words of its refusal."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Literal

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.untrusted.yaml_text import documents
from dynamo_shared.api.validation import Facts

Cluster = Literal["full", "bare", "restricted"]

CASES = Path(__file__).with_name("cases")
ADMIN = "admin"
#: The domains of the full cluster's ClusterTopology, from broad to narrow.
TOPOLOGIES = {"rack-first": ("zone", "block", "rack")}
#: The facts about each cluster: Kubernetes alone; one that serves everything; the same, but the platform manages a
#: single namespace and may not read nodes.
FACTS: Mapping[Cluster, Facts] = {
    "bare": Facts(user=ADMIN, grove=False, inference_pools=False),
    "full": Facts(user=ADMIN, grove=True, inference_pools=True, topologies=TOPOLOGIES),
    "restricted": Facts(
        user=ADMIN, grove=True, inference_pools=True, topologies=TOPOLOGIES, cluster_wide=False, gpu_discovery=False
    ),
}


@dataclass(frozen=True, slots=True)
class Case:
    """One file. `before` is the stored object of an update, and `status` is what the platform reported about it.

    `message` is the refusal as a user of the API server reads it. If the API server itself rejects the manifest before
    it calls admission, `offline` is the refusal by `dynamoctl render`.
    """

    name: str
    breaks: str
    message: str
    manifest: KubeObject = field(default_factory=dict)
    before: KubeObject | None = None
    status: KubeObject | None = None
    scale: int | None = None
    cluster: Cluster = "full"
    user: str = ADMIN
    offline: str | None = None

    @property
    def subject(self) -> KubeObject:
        """The object that is written or scaled."""
        return self.manifest or self.before or {}

    @property
    def standing(self) -> KubeObject | None:
        """The stored object that an update meets, with its status."""
        if self.before is None or self.status is None:
            return self.before
        return {**self.before, "status": self.status}


@cache
def load() -> tuple[Case, ...]:
    """All cases, ordered by the clusters in FACTS, then by name. Tests must not change them."""
    cases = [_case(path) for path in sorted(CASES.rglob("*.yaml"))]
    order = list(FACTS)
    return tuple(sorted(cases, key=lambda case: order.index(case.cluster)))


def _case(path: Path) -> Case:
    (result,) = documents(path.read_text(encoding="utf-8"))
    return Case(name=str(path.relative_to(CASES).with_suffix("")), **result)
