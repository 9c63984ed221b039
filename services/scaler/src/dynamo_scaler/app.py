"""Composition root: all that the scaler service is made of, on one page."""

from __future__ import annotations

import asyncio

from dynamo_shared.runtime import ServiceContext

NAME = "scaler"


class ScalerService:
    """Keeps replicas what adapters, commands and budgets say."""

    name = NAME

    async def run(self, context: ServiceContext) -> None:
        """Serve until cancelled."""
        context.health.ok(NAME)
        await asyncio.Event().wait()
