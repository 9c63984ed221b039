"""Makes an etcd that the platform itself starts require a password."""

from urllib.parse import urlsplit

import grpc
import grpc.aio
from etcd3 import etcdrpc

from dynamo_shared.leases.errors import EtcdUnavailableError

USER = "root"
"""etcd's user with all rights; without this user, etcd cannot require a password."""

_TIMEOUT = 10.0
_DONE_ALREADY = ("already exists", "user name is empty", "already granted")


async def require_password(url: str, password: str) -> None:
    """Let only `root`, with this password, use an etcd at a plain `http://` address. A repeated call changes nothing.

    Raises EtcdUnavailableError if it does not answer, or refuses.
    """
    async with grpc.aio.insecure_channel(urlsplit(url).netloc) as channel:
        auth = etcdrpc.AuthStub(channel)
        for call, request in (
            (auth.RoleAdd, etcdrpc.AuthRoleAddRequest(name=USER)),
            (auth.UserAdd, etcdrpc.AuthUserAddRequest(name=USER, password=password)),
            (auth.UserGrantRole, etcdrpc.AuthUserGrantRoleRequest(user=USER, role=USER)),
            (auth.AuthEnable, etcdrpc.AuthEnableRequest()),
        ):
            try:
                await call(request, timeout=_TIMEOUT)
            except grpc.aio.AioRpcError as error:
                if not any(text in (error.details() or "") for text in _DONE_ALREADY):
                    raise EtcdUnavailableError(f"cannot set the password of etcd: {error.details()}") from error
