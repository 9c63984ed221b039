"""Reports whether a resource can be followed: once when it starts to fail, and once when it works again."""

import logging
from collections.abc import Callable

import structlog

from dynamo_shared.api.resources import Resource
from dynamo_shared.kube import errors

log = structlog.get_logger("dynamo.kube")


class FollowHealth:
    """`on_health(ok, message)` gets the cause and the remedy."""

    def __init__(self, resource: Resource, on_health: Callable[[bool, str], None] | None) -> None:
        self._resource = resource
        self._on_health = on_health or (lambda _ok, _message: None)
        self._healthy: bool | None = None

    def interrupted(self, error: errors.KubeError, version: str) -> None:
        """A single lost connection is normal: only the log has it. Kinds without changes have silent watches."""
        level = logging.DEBUG if error.reason == errors.SILENCE else logging.INFO
        log.log(level, "watch interrupted", resource=self._resource.id, version=version, error=str(error))

    def failed(self, error: errors.KubeError) -> None:
        """Following fails."""
        name = self._resource.id
        if isinstance(error, errors.NotServed):
            message = f"the cluster does not serve {name}; install its CustomResourceDefinition"
        elif isinstance(error, errors.Forbidden):
            message = f"no permission to list or watch {name}: {error.message}"
        else:
            message = f"cannot watch {name}: {error}"
        if self._healthy is not False:
            log.warning(message, resource=name)
        self._healthy = False
        self._on_health(False, message)

    def works(self) -> None:
        """Following works."""
        if self._healthy is not True:
            self._healthy = True
            self._on_health(True, f"watching {self._resource.id}")
