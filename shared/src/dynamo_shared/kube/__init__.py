"""The Kubernetes client: configuration and credentials, reads, writes, watches, Events, errors.

Objects are plain dicts. This package does not know what the platform does with them.
"""

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.kube.client import KubeClient, create_or_get, first_pods, get_if_present
from dynamo_shared.kube.credentials import ConfigError, Identity
from dynamo_shared.kube.errors import (
    AlreadyExists,
    Conflict,
    Expired,
    Forbidden,
    Invalid,
    KubeError,
    NamespaceTerminating,
    NotFound,
    NotServed,
    ResponseTooLarge,
    TooManyRequests,
    Unauthorized,
    Unavailable,
)

__all__ = [
    "AlreadyExists",
    "ConfigError",
    "Conflict",
    "Expired",
    "Forbidden",
    "Identity",
    "Invalid",
    "KubeClient",
    "KubeError",
    "KubeObject",
    "NamespaceTerminating",
    "NotFound",
    "NotServed",
    "ResponseTooLarge",
    "TooManyRequests",
    "Unauthorized",
    "Unavailable",
    "create_or_get",
    "first_pods",
    "get_if_present",
]
