"""Builders of requests, Jobs and pods of builds, as the API server stores them."""

from datetime import UTC, datetime
from typing import Any

from dynamo_image_builder.builds import BentoTag, Build, target_of
from dynamo_image_builder.job import build_job
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import DYNAMO_NIM_REQUESTS, PODS
from dynamo_shared.runtime.settings.image_builder import ImageBuilder

from tests.building.objects import stored_object

NOW = datetime(2026, 1, 2, 0, 10, tzinfo=UTC)
TAG = BentoTag("frontend", "jh2o6dqzpsgfued4")
ARCHIVE = f"sha256:{'1f' * 32}"
DIGEST = f"sha256:{'c4' * 32}"


def settings(**platform: Any) -> ImageBuilder:
    registry = {"server": "registry.example.com/team", **platform.pop("registry", {})}
    return ImageBuilder.model_validate({"registry": registry, **platform})


def build(of: ImageBuilder | None = None, namespace: str = "ns", archive: str = ARCHIVE) -> Build:
    of = of or settings()
    return Build(TAG, archive, target_of(TAG, namespace, of), of.estargz)


def request(name: str = "one", created: str = "2026-01-02T00:00:00Z", **parts: Any) -> KubeObject:
    parts = {"spec": {"bentoTag": str(TAG)}, **parts}
    return stored_object(DYNAMO_NIM_REQUESTS, name, uid=name, creationTimestamp=created, **parts)


def job(
    end: str = "", at: str = "2026-01-02T00:02:34Z", of: ImageBuilder | None = None, **condition: str
) -> KubeObject:
    stored = build_job(build(of), "ns", of or settings())
    stored["metadata"] |= {"uid": "job", "resourceVersion": "5", "creationTimestamp": "2026-01-02T00:01:00Z"}
    stored["status"] = {"startTime": "2026-01-02T00:01:00Z"}
    if end:
        stored["status"]["conditions"] = [{"type": end, "status": "True", "lastTransitionTime": at, **condition}]
    return stored


def ended(container: str, message: str = "", code: int = 0, **parts: Any) -> KubeObject:
    state = {"terminated": {"exitCode": code, "message": message, **parts}}
    which = "initContainerStatuses" if container == "fetch" else "containerStatuses"
    metadata = {"name": "pod", "namespace": "dynamo-builds", "labels": {"batch.kubernetes.io/job-name": build().job}}
    return {**PODS.type_meta, "metadata": metadata, "status": {which: [{"name": container, "state": state}]}}
