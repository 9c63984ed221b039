"""Images of artifacts, for services without one: the DynamoNimRequest that requests an image, and its answer. Pure.

The artifact `frontend:v1` (`frontend--v1` in a DynamoNimDeployment) has the request `frontend--v1` in each namespace
that runs it. An existing request of that name is used, including one that a user created.
"""

import hashlib
from dataclasses import dataclass

from dynamo_shared.api import objects
from dynamo_shared.api.embedded.rules.names import wrong_object_name
from dynamo_shared.api.legacy import BuildPhase, command_of_artifact
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import (
    DYNAMO_DEPLOYMENTS,
    DYNAMO_NIM_DEPLOYMENTS,
    DYNAMO_NIM_REQUESTS,
    ObjectKey,
    Resource,
    controller_reference,
)
from dynamo_shared.api.untrusted.reading import mapping, text
from dynamo_shared.runtime.routes import TaskRoute, indexed
from dynamo_shared.state.cache import ObjectCache

from dynamo_pod_builder.status.component import Failure

#: Kinds that preceded graphs and that run workloads.
LEGACY: tuple[Resource, ...] = (DYNAMO_DEPLOYMENTS, DYNAMO_NIM_DEPLOYMENTS)
IMAGE_PENDING, IMAGE_BUILDING, IMAGE_FAILED = "ImagePending", "ImageBuilding", "ImageFailed"
_BY_REQUEST = "image-request"
_HASH_LENGTH = 16
_ELSE = "or name an image for each service in extraPodSpec.mainContainer.image"


@dataclass(frozen=True, slots=True)
class Waiting:
    """The image is not available yet."""

    reason: str
    message: str


def artifact_of(obj: KubeObject) -> str:
    """The artifact that an object of a kind before graphs names, as name:version; "" if it names none."""
    artifact = text(mapping(obj.get("spec")).get("dynamoNim"))
    name, separator, version = artifact.rpartition("--")
    return f"{name}:{version}" if separator and ":" not in artifact else artifact


def request_key(obj: KubeObject) -> ObjectKey:
    """The key of the request for the image of an object's artifact."""
    artifact = artifact_of(obj)
    name = artifact.replace(":", "--", 1)
    if not name or wrong_object_name(name):
        # Versions may have capitals and underscores; names of objects may not.
        name = f"image-{hashlib.sha256(artifact.encode()).hexdigest()[:_HASH_LENGTH]}"
    return ObjectKey(objects.namespace(obj), name)


def request_for(resource: Resource, obj: KubeObject) -> KubeObject:
    """The request for the image of an object's artifact. The object owns it."""
    key = request_key(obj)
    owner = controller_reference(resource, objects.name(obj), objects.uid(obj))
    return {
        **DYNAMO_NIM_REQUESTS.type_meta,
        "metadata": {"name": key.name, "namespace": key.namespace, "ownerReferences": [owner]},
        "spec": {"bentoTag": artifact_of(obj)},
    }


def answer_of(artifact: str, name: str, request: KubeObject | None) -> str | Waiting | Failure:
    """The image of an artifact, or why it has none yet; `request`: the request of that name, None if there is none."""
    whose = f"{DYNAMO_NIM_REQUESTS.kind} {name}"
    if request is None or objects.is_deleting(request):
        return Waiting(IMAGE_PENDING, f"waiting for the image of {artifact}: {whose} is being created")
    asked = (request.get("spec") or {}).get("bentoTag")
    if asked != artifact:
        return Failure("NameTaken", f"{whose} requests the image of {asked}, not of {artifact}: delete it, {_ELSE}")
    status: KubeObject = request.get("status") or {}
    if status.get("observedGeneration") != objects.generation(request):
        return Waiting(
            IMAGE_PENDING,
            f"waiting for the image of {artifact}: no image-builder has processed {whose} yet; install one, {_ELSE}",
        )
    phase, image = status.get("phase"), status.get("imageRef")
    if phase == BuildPhase.READY and image:
        return str(image)
    entry = objects.condition(request, "Ready")
    message = entry["message"] if entry is not None else ""
    if phase == BuildPhase.FAILED:
        reason = entry["reason"] if entry is not None else phase
        return Failure(IMAGE_FAILED, f"the image of {artifact} is not built: {whose} reports {reason}: {message}")
    if phase == BuildPhase.BUILDING:
        return Waiting(IMAGE_BUILDING, f"waiting for the image of {artifact}, which is being built: {message}")
    return Waiting(IMAGE_PENDING, f"waiting for the image of {artifact}: {message}")


def lacks_image(graph: KubeObject) -> bool:
    """Whether a service of a v1alpha1 graph names no image."""
    return not all(_main(each).get("image") for each in graph["spec"]["services"].values())


def with_image(graph: KubeObject, image: str) -> KubeObject:
    """A v1alpha1 graph whose services run this image, except for services that name their own.

    If a service also names no command, its artifact defines how it starts.
    """
    services = {
        name: service if _main(service).get("image") else _with_image(name, service, image)
        for name, service in graph["spec"]["services"].items()
    }
    return {**graph, "spec": {**graph["spec"], "services": services}}


def index(cache: ObjectCache) -> None:
    """Index objects of the kinds before graphs by the request for their artifact's image, and trim these requests."""
    cache.keep_only(DYNAMO_NIM_REQUESTS, objects.with_essential_metadata)
    for resource in LEGACY:
        cache.add_index(resource, _BY_REQUEST, lambda each: (str(request_key(each)),))


def route(cache: ObjectCache) -> TaskRoute:
    """Which objects are reconciled when a request changes."""
    return TaskRoute(DYNAMO_NIM_REQUESTS, to=indexed(cache, _BY_REQUEST, *LEGACY))


def _main(service: KubeObject) -> KubeObject:
    return (service.get("extraPodSpec") or {}).get("mainContainer") or {}


def _with_image(name: str, service: KubeObject, image: str) -> KubeObject:
    pod, main = service.get("extraPodSpec") or {}, {**_main(service), "image": image}
    if not (main.get("command") or main.get("args")):
        main |= command_of_artifact(name, service.get("envs") or ())
    return {**service, "extraPodSpec": {**pod, "mainContainer": main}}
