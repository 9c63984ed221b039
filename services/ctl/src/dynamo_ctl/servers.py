"""The servers that a platform on this machine brings along: NATS and etcd, unless the settings name others."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from dynamo_shared.runtime.settings import Settings

from dynamo_ctl.localcluster import EtcdServer, NatsServer, Programs
from dynamo_ctl.settings import with_platform


@asynccontextmanager
async def embedded(settings: Settings, folder: Path, programs: Programs) -> AsyncIterator[Settings]:
    """Settings that name running servers: those that they name already, else ours, whose data is kept in `folder`.

    Raises LocalClusterError where a program cannot be obtained or does not start.
    """
    platform = settings.platform
    async with AsyncExitStack() as stack:
        if "servers" not in platform.nats.model_fields_set:
            nats = NatsServer(await programs.obtain("nats-server"), folder / "nats")
            await stack.enter_async_context(nats)
            settings = with_platform(settings, nats=platform.nats.model_copy(update={"servers": (nats.url,)}))
        if not platform.etcd.endpoints:
            etcd = EtcdServer(await programs.obtain("etcd"), folder / "etcd")
            await stack.enter_async_context(etcd)
            settings = with_platform(settings, etcd=platform.etcd.model_copy(update={"endpoints": (etcd.url,)}))
        yield settings
