"""Composition root: all that the model-discovery service is made of, on one page."""

from __future__ import annotations

import asyncio

from dynamo_shared.runtime import ServiceContext

NAME = "model-discovery"


class ModelDiscoveryService:
    """Finds the endpoints of models, loads LoRA adapters, and tells who serves what."""

    name = NAME

    async def run(self, context: ServiceContext) -> None:
        """Serve until cancelled."""
        context.health.ok(NAME)
        await asyncio.Event().wait()
