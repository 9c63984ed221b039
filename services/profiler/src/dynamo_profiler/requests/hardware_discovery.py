"""Discovers the hardware of the cluster: first from labels of nodes and ResourceSlices, which cost nothing, then from
DCGM exporters.
"""

from dataclasses import dataclass

from dynamo_shared.api.resources import NODES, RESOURCE_SLICES
from dynamo_shared.api.v1beta1.request import HardwareSpec
from dynamo_shared.api.wording import many
from dynamo_shared.state.cache import ObjectCache

from dynamo_profiler.requests.dcgm import DcgmExporters
from dynamo_profiler.requests.hardware import (
    DCGM,
    NODE_LABELS,
    SLICES,
    SPEC,
    HardwarePlan,
    HardwareUnknown,
    complete,
    is_complete,
    kinds,
    limited_to_nodes,
    nodes_with_labels,
    nodes_with_slices,
    stated,
)


@dataclass(frozen=True, slots=True)
class HardwareFinder:
    """Completes the hardware of requests. If nodes may not be read, requests must be complete."""

    cache: ObjectCache
    exporters: DcgmExporters
    cap: int
    enabled: bool

    async def find(self, asked: HardwareSpec | None, *, discover: bool = True) -> HardwarePlan:
        """The hardware to plan for. Raises HardwareUnknown if neither the request nor the cluster has it, or KubeError.

        `discover`: the request's setting. Without discovery the request must be complete; without a number of GPUs it
        means the GPUs of one node.
        """
        if not discover:
            return stated(asked)
        if not self.enabled:
            return complete(asked, (), cap=self.cap, source=SPEC)
        nodes = self.cache.list(NODES)
        observed = kinds(nodes_with_labels(nodes))
        if observed or is_complete(asked):
            return complete(asked, observed, cap=self.cap, source=NODE_LABELS)
        if published := kinds(nodes_with_slices(self.cache.list(RESOURCE_SLICES), nodes)):
            return complete(asked, published, cap=self.cap, source=SLICES)
        exported = kinds(limited_to_nodes(await self.exporters.nodes(), nodes))
        try:
            return complete(asked, exported, cap=self.cap, source=DCGM)
        except HardwareUnknown as unknown:
            if not (silent := self.exporters.silent):
                raise
            message = f"{unknown}; {many(silent, 'DCGM exporter')} did not report GPUs"
            raise HardwareUnknown(message) from unknown
