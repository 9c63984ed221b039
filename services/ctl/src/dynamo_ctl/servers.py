"""The servers that a platform on this machine brings along: NATS and etcd, unless the settings name others."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from dynamo_shared.leases.channel import EtcdOptions
from dynamo_shared.leases.client import EtcdClient
from dynamo_shared.leases.epoch import Epoch
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
            new = not etcd.data.exists()
            await stack.enter_async_context(etcd)
            settings = with_platform(settings, etcd=platform.etcd.model_copy(update={"endpoints": (etcd.url,)}))
            if new:
                await _nothing_was_ever_held(settings)
        yield settings


async def _nothing_was_ever_held(settings: Settings) -> None:
    """Spare an etcd of ours that is new the wait for leases that it could have forgotten (leases.epoch).

    Where the prefix were not that of runtime.leasing, the platform would wait, and still be right.
    """
    etcd = settings.platform.etcd
    prefix = f"{etcd.prefix.rstrip('/')}/{settings.platform.cluster_name}"
    async with EtcdClient(EtcdOptions(endpoints=etcd.endpoints)) as client:
        await client.create(Epoch(client, prefix, math.ceil(etcd.lease_ttl)).marker, b"")
