"""The real Dynamo runtime in pods that the platform made."""

from __future__ import annotations

from dynamo_shared.api.resources import ObjectKey
from dynamo_shared.kube import KubeClient

from tests.integration.platform import until_state


async def test_the_graph_becomes_successful_by_real_probes(kube: KubeClient, deployed: ObjectKey) -> None:
    await until_state(kube, deployed, "successful", 120)
