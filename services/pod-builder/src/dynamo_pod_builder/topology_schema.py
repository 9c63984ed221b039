"""Which fields the cluster's Grove serves in a topology constraint, read from the schema that the API server publishes.

Every authenticated caller may read the document. It has a megabyte: it is read only if a graph names a topology domain,
and again only if its hash in the index has changed.
"""

import asyncio
from collections.abc import Callable
from typing import Final

import msgspec
import structlog
from dynamo_shared.api.resources import POD_CLIQUE_SETS
from dynamo_shared.kube import KubeClient, openapi
from dynamo_shared.kube.errors import KubeError

from dynamo_pod_builder.render.workloads.topology import DEFAULT_FIELDS

log = structlog.get_logger("dynamo.pod-builder")

#: A new release of Grove takes effect after at most this time. Seconds.
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
    """The fields of a topology constraint; those of releases before 0.1.0-alpha.9 if no schema can be read."""

    def __init__(self, kube: KubeClient, clock: Callable[[], float]) -> None:
        self._kube = kube
        self._clock = clock
        self._fields = DEFAULT_FIELDS
        self._hash = ""
        self._asked = float("-inf")
        self._reading = asyncio.Lock()

    async def fields(self) -> frozenset[str]:
        """The fields that the API server published within the last minute; unchanged if they cannot be read."""
        async with self._reading:
            if self._clock() - self._asked >= INTERVAL:
                try:
                    await self._read()
                except (KubeError, msgspec.MsgspecError) as error:
                    log.warning(
                        "cannot read the schema of PodCliqueSets", error=str(error), fields=sorted(self._fields)
                    )
                self._asked = self._clock()
        return self._fields

    async def _read(self) -> None:
        published = (await openapi.index(self._kube)).get(_DOCUMENT)
        if not published or published == self._hash:
            return
        self._fields = _fields_of(await openapi.document(self._kube, _DOCUMENT)) or DEFAULT_FIELDS
        self._hash = published


def _fields_of(content: bytes) -> frozenset[str]:
    """Names in the schema of a constraint; empty if the document has none. Raises MsgspecError."""
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
