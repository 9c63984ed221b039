"""Which fields the cluster's Grove serves in a topology constraint, by the schema that the API server publishes.

The document needs no right that an authenticated caller lacks. It has a megabyte: it is read where a graph names a domain,
and again only where its hash in the index is another one.
"""

from collections.abc import Callable
from typing import Final

import msgspec
import structlog
from dynamo_shared.api.resources import POD_CLIQUE_SETS
from dynamo_shared.kube import KubeClient, openapi
from dynamo_shared.kube.errors import KubeError

from dynamo_pod_builder.render.workloads.topology import DEFAULT_FIELDS

log = structlog.get_logger("dynamo.pod-builder")

#: A new release of Grove counts so much later. Seconds.
INTERVAL: Final = 60.0
_DOCUMENT = f"apis/{POD_CLIQUE_SETS.group}/{POD_CLIQUE_SETS.version}"
_PATH = ("spec", "template", "topologyConstraint")


class _SchemasByName(msgspec.Struct):
    schemas: dict[str, msgspec.Raw] = {}


class _OpenApi(msgspec.Struct):
    components: _SchemasByName = msgspec.field(default_factory=_SchemasByName)


class _Schema(msgspec.Struct):
    properties: dict[str, msgspec.Raw] = {}


class TopologySchema:
    """The fields of a topology constraint; those of releases before 0.1.0-alpha.9 where no schema can be read."""

    def __init__(self, kube: KubeClient, clock: Callable[[], float]) -> None:
        self._kube = kube
        self._clock = clock
        self._fields = DEFAULT_FIELDS
        self._hash = ""
        self._asked = float("-inf")

    async def fields(self) -> frozenset[str]:
        """What the API server published within the last minute. What cannot be read leaves it as it was."""
        if self._clock() - self._asked >= INTERVAL:
            self._asked = self._clock()
            try:
                await self._read()
            except (KubeError, msgspec.MsgspecError) as error:
                log.warning("the schema of PodCliqueSets cannot be read", error=str(error), fields=sorted(self._fields))
        return self._fields

    async def _read(self) -> None:
        published = (await openapi.index(self._kube)).get(_DOCUMENT)
        if not published or published == self._hash:
            return
        self._fields = _fields_of(await openapi.document(self._kube, _DOCUMENT)) or DEFAULT_FIELDS
        self._hash = published


def _fields_of(content: bytes) -> frozenset[str]:
    """Names in the schema of a constraint; empty where the document has none. Raises MsgspecError."""
    schemas = msgspec.json.decode(content, type=_OpenApi).components.schemas
    of_set = next((raw for name, raw in schemas.items() if name.endswith(f".{POD_CLIQUE_SETS.kind}")), None)
    if of_set is None:
        return frozenset()
    schema = msgspec.json.decode(of_set, type=_Schema)
    for name in _PATH:
        if name not in schema.properties:
            return frozenset()
        schema = msgspec.json.decode(schema.properties[name], type=_Schema)
    return frozenset(schema.properties)
