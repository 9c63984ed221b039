"""Details of one object: status, manifest, pods, tree."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from functools import partial

from aiohttp import web
from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import PODS, ObjectKey, Resource
from dynamo_shared.api.yaml_output import to_yaml

from dynamo_dynadmin.api import family
from dynamo_dynadmin.api.changes import changes_of
from dynamo_dynadmin.api.collection_reader import CollectionReader
from dynamo_dynadmin.api.kinds import DEPLOYMENTS, Kind
from dynamo_dynadmin.api.ownership import manager_of, manifest_of
from dynamo_dynadmin.http.call import Call
from dynamo_dynadmin.http.routes import YAML
from dynamo_dynadmin.identity.access import ResourceAttributes
from dynamo_dynadmin.state.entries import StoredObject
from dynamo_dynadmin.state.hub import Hub


class Details:
    """Answers with details of single objects."""

    def __init__(self, hub: Hub, reading: CollectionReader) -> None:
        self._hub = hub
        self._reading = reading

    async def status(self, call: Call, kind: Kind) -> web.StreamResponse:
        """The status, in a format common to all kinds."""
        obj = await self.object(call, kind)
        status = obj.get("status") or {}
        metadata, observed = obj["metadata"], status.get("observedGeneration")
        return call.answer(
            {
                "name": metadata["name"],
                "namespace": metadata["namespace"],
                **family.health(obj),
                "generation": metadata.get("generation", 0),
                "observedGeneration": observed or 0,
                "upToDate": observed is None or observed == metadata.get("generation"),
                "managedBy": manager_of(obj),
                "changes": changes_of(obj),
                "conditions": [
                    {
                        name: str(each.get(name) or "")
                        for name in ("type", "status", "reason", "message", "lastTransitionTime")
                    }
                    for each in status.get("conditions") or ()
                ],
                "status": status,
            }
        )

    async def manifest(self, call: Call, kind: Kind) -> web.StreamResponse:
        """The manifest that a user would apply: without status and without fields that the API server writes."""
        clean = manifest_of(await self.object(call, kind))
        if call.text("format") == "yaml":
            # Takes a second if the object is as large as Kubernetes stores it.
            text = await call.apart(partial(to_yaml, clean), objects.size_of(clean))
            return web.Response(text=text, content_type=YAML)
        return call.answer(clean)

    async def pods(self, call: Call, kind: Kind) -> web.StreamResponse:
        """The pods, with nodes and GPUs."""
        await self._require_pods(call, kind)
        return call.answer({"items": [family.pod_row(each) async for each in self.known_pods(call, kind)]})

    async def pods_of(self, call: Call, kind: Kind) -> list[KubeObject]:
        """Pods of a graph or of a component, ordered by name."""
        await self._require_pods(call, kind)
        return [each async for each in self.known_pods(call, kind)]

    async def _require_pods(self, call: Call, kind: Kind) -> None:
        """ProblemError if the object does not exist, or the caller may not list its pods."""
        await self.object(call, kind)
        await self._reading.require(call, ResourceAttributes("list", PODS, call.namespace))
        self._reading.known(PODS)

    async def known_pods(
        self, call: Call, kind: Kind, selects: Callable[[StoredObject], bool] = lambda _: True
    ) -> AsyncGenerator[KubeObject]:
        """The pods that `selects` selects, without checking the caller's right to read them.

        Other requests get a turn between them: a graph may have ten thousand pods.
        """
        for each in self._hub.entries(PODS).of_namespace(call.namespace):
            if self.is_pod_of(each, kind, call.name) and selects(each):
                yield each.obj
                await asyncio.sleep(0)

    def is_pod_of(self, pod: StoredObject, kind: Kind, name: str) -> bool:
        """Whether a pod belongs to the graph or component of that name, in the pod's namespace."""
        label = labels.GRAPH_DEPLOYMENT_NAME if kind is DEPLOYMENTS else labels.SELECTOR
        return pod.labels.get(label) == name

    async def tree(self, call: Call, kind: Kind) -> web.StreamResponse:
        """The object and all that it owns, down to pods. Resources that the caller may not list are omitted,
        and named.
        """
        root = {**await self.object(call, kind), "kind": kind.resource.kind}
        visible, hidden = await self._visible(call)
        outlines = [_outline(resource, each) for resource, each in visible]
        kin = {each["metadata"].get("uid") for each in family.relatives(root, outlines)}
        objects, healths = list[KubeObject](), {root["metadata"].get("uid"): family.health(root)}
        for (resource, each), outline in zip(visible, outlines, strict=True):
            if (uid := outline["metadata"].get("uid")) in kin:
                # One decoded object at a time: anyone may let a graph own thousands of a megabyte each.
                healths[uid] = family.health({**each.obj, **resource.type_meta})
                objects.append(outline)
                await asyncio.sleep(0)
        return call.answer({"tree": family.tree(root, objects, healths), "hidden": hidden})

    async def descendants(self, call: Call, kind: Kind, root: KubeObject) -> set[tuple[str, str]]:
        """Kinds and names of an object and of all that it owns, except what the caller may not list."""
        visible, _ = await self._visible(call)
        outlines = (_outline(resource, each) for resource, each in visible)
        return family.descendants({**root, "kind": kind.resource.kind}, outlines)

    async def object(self, call: Call, kind: Kind) -> KubeObject:
        """The object of the path, read with the caller's rights."""
        return await call.kube.get(kind.resource, ObjectKey(call.namespace, call.name))

    async def _visible(self, call: Call) -> tuple[list[tuple[Resource, StoredObject]], list[str]]:
        """Objects of the namespace that the caller may list, and the resources that the caller may not list."""
        stored = {
            resource: entries
            for resource in self._hub.resources.values()
            if resource.namespaced and (entries := self._hub.entries(resource).of_namespace(call.namespace))
        }
        acts = {resource: ResourceAttributes("list", resource, call.namespace) for resource in stored}
        allowed = await self._reading.allowed(call, acts)
        visible = [(resource, each) for resource, entries in stored.items() if allowed[resource] for each in entries]
        return visible, [resource.id for resource in stored if not allowed[resource]]


def _outline(resource: Resource, entry: StoredObject) -> KubeObject:
    return {**entry.outline, **resource.type_meta}
