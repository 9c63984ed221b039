"""The servers that a platform on this machine starts: NATS and etcd, unless the settings name others.

Both require passwords, because every process of every user of the machine can connect to loopback. NATS has one user
for each service and one for integrations (`dynamo_shared.bus.permissions`), etcd has `root`. The passwords are random,
in `credentials/`.
"""

import math
import os
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path

import structlog
from dynamo_devcluster import (
    EtcdServer,
    LocalClusterError,
    ManagedProcess,
    NatsServer,
    NatsServerOptions,
    Programs,
    supervised,
)
from dynamo_shared.bus import permissions, server_config
from dynamo_shared.bus.sizes import MAX_PAYLOAD
from dynamo_shared.leases.client import EtcdClient
from dynamo_shared.leases.password import USER, require_password
from dynamo_shared.leases.session import Epoch
from dynamo_shared.runtime.leasing.etcd import options_of, prefix_of
from dynamo_shared.runtime.settings import Settings

from dynamo_ctl import credentials
from dynamo_ctl.commands.up.addresses import page_address
from dynamo_ctl.errors import CtlError, ExitCode
from dynamo_ctl.page_account import TOKEN
from dynamo_ctl.running_platform import RunningPlatform
from dynamo_ctl.settings import with_platform

NATS_CREDENTIALS = Path("credentials") / "nats"
ETCD_CREDENTIALS = Path("credentials") / "etcd"

log = structlog.get_logger("dynamo.ctl")


@contextmanager
def as_ctl_errors() -> Iterator[None]:
    """Raises CtlError if a local server cannot be obtained or does not start."""
    try:
        yield
    except LocalClusterError as error:
        raise CtlError(str(error), ExitCode.UNREACHABLE) from error


def supervised_servers(*processes: ManagedProcess) -> AbstractAsyncContextManager[None]:
    """During this block, restart a server that crashes, and log it. Raises LocalClusterError after repeated crashes."""
    # At level error, because `demo` hides lower levels.
    return supervised(processes, log.error)


@asynccontextmanager
async def embedded(settings: Settings, folder: Path, programs: Programs) -> AsyncIterator[Settings]:
    """Settings with running servers: the servers of `settings`, otherwise local servers with data in `folder`.

    Raises LocalClusterError if a program cannot be obtained or does not start.
    """
    platform = settings.platform
    async with AsyncExitStack() as stack:
        if "servers" not in platform.nats.model_fields_set:
            passwords = credentials.load_or_create(folder / NATS_CREDENTIALS, permissions.USERS)
            options = NatsServerOptions(
                authorization=server_config.authorization(platform.cluster_name, passwords),
                max_payload=MAX_PAYLOAD,
            )
            nats = NatsServer(await programs.obtain("nats-server"), folder / "nats", options)
            await stack.enter_async_context(nats)
            await stack.enter_async_context(supervised_servers(nats))
            settings = with_platform(
                settings,
                nats=platform.nats.model_copy(
                    update={
                        "servers": (nats.url,),
                        "user": permissions.PLATFORM,
                        "password_file": folder / NATS_CREDENTIALS / permissions.PLATFORM,
                    }
                ),
            )
        if not platform.etcd.endpoints:
            settings = await _etcd(settings, folder, programs, stack)
        yield settings


def running_here(settings: Settings, folder: Path, *, has_token: bool) -> RunningPlatform:
    """The record of the platform that this process runs, with its state in a folder, for other commands."""
    platform, own = settings.platform, (folder / NATS_CREDENTIALS).absolute()
    file = platform.nats.password_file
    is_own = file is not None and file.absolute().parent == own
    return RunningPlatform(
        os.getpid(),
        platform.cluster_name,
        platform.nats.servers[0],
        str(platform.kubernetes.kubeconfig or ""),
        platform.kubernetes.context or "",
        nats_credentials=str(own) if is_own else "",
        api=page_address(settings),
        token_file=str(folder / TOKEN) if has_token else "",
    )


async def _etcd(settings: Settings, folder: Path, programs: Programs, stack: AsyncExitStack) -> Settings:
    etcd = EtcdServer(await programs.obtain("etcd"), folder / "etcd")
    file = folder / ETCD_CREDENTIALS / USER
    if not file.exists() and etcd.data.exists():
        # The data has a lost password, or none (an old release). It holds only what may expire with a lease.
        shutil.rmtree(etcd.data)
    new = not etcd.data.exists()
    password = credentials.load_or_create(file.parent, [USER])[USER]
    await stack.enter_async_context(etcd)
    await stack.enter_async_context(supervised_servers(etcd))
    await require_password(etcd.url, password)
    named = settings.platform.etcd.model_copy(
        update={"endpoints": (etcd.url,), "user": USER, "password_file": file},
    )
    settings = with_platform(settings, etcd=named)
    if new:
        await _skip_wait_for_lost_leases(settings)
    return settings


async def _skip_wait_for_lost_leases(settings: Settings) -> None:
    """Spare a new local etcd the wait for leases that it might have lost (`leases.session.Epoch`)."""
    platform = settings.platform
    async with EtcdClient(options_of(platform.etcd)) as client:
        await client.create(Epoch(client, prefix_of(platform), math.ceil(platform.etcd.lease_ttl)).marker, b"")
