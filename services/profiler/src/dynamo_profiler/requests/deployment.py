"""Creates the graph that profiling selected, once, never takes one over, and follows it until it serves."""

from collections.abc import Iterable
from dataclasses import dataclass

from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels
from dynamo_shared.api.request_graphs import graph_of, is_created_for, marked
from dynamo_shared.api.request_parts import in_request_fields
from dynamo_shared.api.resources import (
    CONFIG_MAPS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    ObjectKey,
    key_of,
    owner_reference,
)
from dynamo_shared.api.v1beta1.request import RequestPhase
from dynamo_shared.kube import KubeClient, get_if_present
from dynamo_shared.kube.errors import AlreadyExists, Forbidden, Invalid, KubeError, MissingRight, NamespaceTerminating
from dynamo_shared.runtime.facts import Announcer
from dynamo_shared.state.cache import ObjectCache

from dynamo_profiler import events
from dynamo_profiler.requests.ownership import is_managed, owner_of, write
from dynamo_profiler.requests.status import DEPLOYMENT_READY, StatusDraft
from dynamo_profiler.requests.thorough import names

_TAKEN = (
    "DynamoGraphDeployment {name} exists, and was not created for this request: delete it, or choose another name with "
    "spec.overrides.dgd.metadata.name in a new request"
)
#: Reasons of a request that failed because of its graph. If a graph was created for it later, it is followed again.
_DELETED, _REJECTED = "DeploymentDeleted", "DeploymentRejected"
_ENDED_WITHOUT_GRAPH = frozenset({_DELETED, _REJECTED})
#: Reasons of a graph whose images cannot be pulled.
_IMAGE_REASONS = ("ErrImagePull", "ImagePullBackOff", "ImagePullFailed")


BY_OWNER = "owner"


def index(cache: ObjectCache) -> None:
    """Index the ConfigMaps of graphs by owner. Their data are not read, nor the data of ConfigMaps that users label
    alike.
    """
    cache.keep_only(CONFIG_MAPS, _without_data)
    cache.add_index(CONFIG_MAPS, BY_OWNER, _owners)


def _without_data(config_map: KubeObject) -> KubeObject:
    if objects.name(config_map) == names.output(objects.labels(config_map).get(labels.REQUEST_NAME, "")):
        return config_map
    return {name: value for name, value in config_map.items() if name not in ("data", "binaryData")}


def _owners(config_map: KubeObject) -> list[str]:
    if objects.name(config_map).startswith(names.output("")):
        return []
    return [each["uid"] for each in config_map["metadata"].get("ownerReferences", ())]


@dataclass(frozen=True, slots=True)
class GraphDeployer:
    """Creates and follows the graph of a request."""

    kube: KubeClient
    cache: ObjectCache
    announcer: Announcer

    async def provide(self, obj: KubeObject, graph: str, config_maps: Iterable[KubeObject]) -> None:
        """Write the ConfigMaps that the graph `graph` reads. They belong to the request until the graph exists.

        Raises NameInUse if a ConfigMap with this name exists that was not created for this request.
        """
        request = obj["metadata"]["name"]
        for config_map in config_maps:
            made = marked(obj, config_map, owner=owner_of(obj))
            made["metadata"]["labels"][labels.GRAPH_DEPLOYMENT_NAME] = graph
            await write(self.kube, made, lambda observed: is_managed(observed, request))

    async def advance(self, obj: KubeObject, draft: StatusDraft) -> None:
        """Take a deploying request one step further."""
        name = draft.status["dgdName"]
        graph = await self._graph(obj, name)
        if graph is not None:
            if not is_created_for(graph, obj):
                self.reject_taken(obj, draft, name)
                return
            await self._hand_over(obj, graph)
            self._report_graph(obj, draft, graph)
            return
        made = draft.condition(DEPLOYMENT_READY)
        if made is not None and made["reason"] != "DeploymentCreationFailed":
            self._lost(obj, draft)
            return
        await self._create(obj, draft, name)

    async def follow(self, obj: KubeObject, draft: StatusDraft) -> None:
        """Report the graph of a deployed request."""
        graph = await self._graph(obj, draft.status.get("dgdName", ""))
        if graph is None or not is_created_for(graph, obj):
            self._lost(obj, draft)
        else:
            self._report_graph(obj, draft, graph)

    async def resume(self, obj: KubeObject, draft: StatusDraft) -> bool:
        """Whether a request that lost its graph, or whose graph had a name in use, has a graph now because a user
        created it.

        The graph is then followed like a graph that this service created.
        """
        ended = draft.condition(DEPLOYMENT_READY) or {}
        selected = (draft.status.get("profilingResults") or {}).get("selectedConfig")
        if ended.get("reason") not in _ENDED_WITHOUT_GRAPH or not selected:
            return False
        key = ObjectKey(obj["metadata"]["namespace"], selected["metadata"]["name"])
        graph = self.cache.get(DYNAMO_GRAPH_DEPLOYMENTS, key)
        if graph is None or not is_created_for(graph, obj) or objects.is_deleting(graph):
            return False
        await self._hand_over(obj, graph)
        self._report_graph(obj, draft.put(dgdName=key.name), graph)
        return True

    async def _graph(self, obj: KubeObject, name: str) -> KubeObject | None:
        """Read the graph `name`. Asks the API server for a missing or foreign graph, because the request fails for it."""
        key = ObjectKey(obj["metadata"]["namespace"], name)
        graph = self.cache.get(DYNAMO_GRAPH_DEPLOYMENTS, key)
        if graph is not None and is_created_for(graph, obj):
            return graph
        return await get_if_present(self.kube, DYNAMO_GRAPH_DEPLOYMENTS, key)

    async def _create(self, obj: KubeObject, draft: StatusDraft, name: str) -> None:
        graph = graph_of(obj, draft.status["profilingResults"]["selectedConfig"])
        try:
            written = await self.kube.create(DYNAMO_GRAPH_DEPLOYMENTS, graph)
        except AlreadyExists:
            existing = await self.kube.get(DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey(obj["metadata"]["namespace"], name))
            if not is_created_for(existing, obj):
                self.reject_taken(obj, draft, name)
                return
            written = existing
        except NamespaceTerminating:
            raise
        except KubeError as error:
            if isinstance(error, Invalid | Forbidden) and not isinstance(error, MissingRight):
                self._reject(obj, draft, str(error))
                return
            self.announcer.announce(obj, events.DEPLOYMENT_CREATION_FAILED(str(error)))
            raise
        self.cache.put(DYNAMO_GRAPH_DEPLOYMENTS, written)
        await self._hand_over(obj, written)
        message = f"Created DynamoGraphDeployment {name}"
        self.announcer.announce(obj, events.DEPLOYMENT_CREATED(message))
        draft.say(DEPLOYMENT_READY, False, "DeploymentInProgress", message)
        draft.enter(RequestPhase.DEPLOYING, message)

    async def is_taken(self, obj: KubeObject, name: str) -> bool:
        """Whether the graph `name` was not created for this request. The names of its ConfigMaps derive from its name."""
        graph = await self._graph(obj, name)
        return graph is not None and not is_created_for(graph, obj)

    def reject_taken(self, obj: KubeObject, draft: StatusDraft, name: str) -> None:
        """Fail the request: another graph has the name of its graph."""
        self._reject(obj, draft, _TAKEN.format(name=name))

    def _reject(self, obj: KubeObject, draft: StatusDraft, message: str) -> None:
        self.announcer.announce(obj, events.DEPLOYMENT_REJECTED(in_request_fields(message, obj)))
        draft.fail(DEPLOYMENT_READY, _REJECTED, message)

    def _lost(self, obj: KubeObject, draft: StatusDraft) -> None:
        name = draft.status.get("dgdName", "")
        message = (
            f"DynamoGraphDeployment {name} was deleted and is not recreated: create the request again, or deploy its result "
            f"with dynamoctl dgdr apply {obj['metadata']['name']}"
        )
        self.announcer.announce(obj, events.DEPLOYMENT_DELETED(message))
        draft.put(dgdName=None, deploymentInfo=None).fail(DEPLOYMENT_READY, _DELETED, message)

    def _report_graph(self, obj: KubeObject, draft: StatusDraft, graph: KubeObject) -> None:
        name, status = graph["metadata"]["name"], graph.get("status") or {}
        components = (status.get("components") or {}).values()
        draft.put(
            deploymentInfo={
                "replicas": sum(each.get("replicas") or 0 for each in components),
                "availableReplicas": sum(each.get("availableReplicas") or 0 for each in components),
            }
        )
        ready = objects.condition(graph, "Ready") or {}
        why = ready.get("message") or "its components are starting"
        if status.get("state") == "successful":
            message = f"DynamoGraphDeployment {name} is serving"
            if draft.phase is not RequestPhase.DEPLOYED:
                self.announcer.announce(obj, events.DEPLOYMENT_READY(message))
            draft.say(DEPLOYMENT_READY, True, "DeploymentReady", message).enter(RequestPhase.DEPLOYED, message)
            return
        message = f"DynamoGraphDeployment {name}: {why}"
        if draft.phase is RequestPhase.DEPLOYED:
            self.announcer.announce(obj, events.DEPLOYMENT_DEGRADED(message))
        elif (
            ready.get("reason") in _IMAGE_REASONS
            and (draft.condition(DEPLOYMENT_READY) or {}).get("message") != message
        ):
            self.announcer.announce(obj, events.IMAGE_PULL_FAILED(message))
        draft.say(DEPLOYMENT_READY, False, "DeploymentInProgress", message).enter(RequestPhase.DEPLOYING, message)

    async def share(self, obj: KubeObject, draft: StatusDraft) -> None:
        """Tie the ConfigMaps to the life of a graph that a user applied, too: the user may delete and apply it again."""
        name = draft.status.get("dgdName", "")
        graph = self.cache.get(DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey(obj["metadata"]["namespace"], name))
        if graph is not None and is_created_for(graph, obj):
            for config_map in self._config_maps(obj, graph):
                owners = config_map["metadata"]["ownerReferences"]
                if all(each["uid"] != graph["metadata"]["uid"] for each in owners):
                    await self._own(config_map, [*owners, _graph_owner(graph)])

    async def _hand_over(self, obj: KubeObject, graph: KubeObject) -> None:
        """Tie the ConfigMaps to the life of the graph, which outlives the request."""
        for config_map in self._config_maps(obj, graph):
            await self._own(config_map, [_graph_owner(graph)])

    def _config_maps(self, obj: KubeObject, graph: KubeObject) -> list[KubeObject]:
        """The ConfigMaps that a graph reads and its request owns."""
        namespace, name = objects.namespace(obj), objects.name(graph)
        return [
            each
            for each in self.cache.by_index(CONFIG_MAPS, BY_OWNER, objects.uid(obj))
            if objects.namespace(each) == namespace and objects.labels(each).get(labels.GRAPH_DEPLOYMENT_NAME) == name
        ]

    async def _own(self, config_map: KubeObject, owners: list[KubeObject]) -> None:
        metadata = {"ownerReferences": owners, "resourceVersion": config_map["metadata"]["resourceVersion"]}
        written = await self.kube.merge_patch(CONFIG_MAPS, key_of(config_map), {"metadata": metadata})
        self.cache.put(CONFIG_MAPS, written)


def _graph_owner(graph: KubeObject) -> KubeObject:
    return owner_reference(DYNAMO_GRAPH_DEPLOYMENTS, graph["metadata"]["name"], graph["metadata"]["uid"])
