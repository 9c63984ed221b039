"""Admission on this machine: a loopback address that a local API server can call, and its objects in the cluster."""

import contextlib
from ipaddress import ip_address
from urllib.parse import urlsplit

import structlog
from dynamo_shared.api.resources import (
    DYNAMO_GRAPH_DEPLOYMENTS,
    MUTATING_WEBHOOK_CONFIGURATIONS,
    NAMESPACES,
    VALIDATING_WEBHOOK_CONFIGURATIONS,
    ObjectKey,
)
from dynamo_shared.kube import AlreadyExists, KubeClient, KubeError, NotFound
from dynamo_shared.runtime import Settings

from dynamo_ctl.errors import CtlError, ExitCode
from dynamo_ctl.settings import with_platform

log = structlog.get_logger("dynamo.ctl")

LOOPBACK = "127.0.0.1"
#: Name of both webhook configurations (dynamo_admission.registration).
CONFIGURATION = "dynamo-admission"
#: Default namespace of the Secret with the certificate.
NAMESPACE = "dynamo-system"
#: In v1alpha1, so that conversion in both directions is tested, too.
_PROBE = {
    **DYNAMO_GRAPH_DEPLOYMENTS.at("v1alpha1").type_meta,
    "metadata": {"name": "dynamo-admission-probe", "namespace": "default"},
    "spec": {"services": {"Frontend": {"componentType": "frontend", "replicas": 1}}},
}


def named(settings: Settings) -> bool:
    """Whether the settings have the address of the webhooks."""
    return bool(settings.platform.admission.url or settings.server.webhook.service_name)


def on_loopback(settings: Settings, port: int) -> Settings:
    """The settings with webhooks at a port of this machine, for an API server on this machine."""
    webhook = settings.server.webhook.model_copy(update={"host": LOOPBACK, "port": port})
    named = settings.platform.admission
    update = {"url": f"https://{LOOPBACK}:{port}", "namespace": named.namespace or NAMESPACE}
    # Without another replica, the API server cannot switch during a drain.
    drain = named.drain if "drain" in named.model_fields_set else 0.0
    admission = named.model_copy(update={**update, "drain": drain})
    server = settings.server.model_copy(update={"webhook": webhook})
    return with_platform(settings.model_copy(update={"server": server}), admission=admission)


def is_local(server: str) -> bool:
    """Whether the URL of an API server points to this machine."""
    host = urlsplit(server).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


async def make_namespace(client: KubeClient, settings: Settings) -> None:
    """Create the namespace of the certificate's Secret if it does not exist."""
    name = settings.platform.admission.namespace or NAMESPACE
    with contextlib.suppress(AlreadyExists):
        await client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})


async def check_reachable(client: KubeClient) -> None:
    """Check that the API server reaches the webhooks. If it does not, withdraw the webhooks and raise CtlError.

    An API server in a container has its own loopback: registered but unreachable webhooks would block every write.
    """
    try:
        await client.create(DYNAMO_GRAPH_DEPLOYMENTS.at("v1alpha1"), _PROBE, dry_run=True)
    except KubeError as error:
        if "webhook" not in error.message:
            return  # The API server answered. It does not matter here that this user may not create graphs.
        await withdraw(client)
        raise CtlError(
            f"the API server does not reach the webhooks on this machine ({error.message}); set platform.admission.url to "
            "an https address that the API server reaches, and server.webhook.host to the address on which to listen",
            ExitCode.UNREACHABLE,
        ) from error


async def withdraw(client: KubeClient) -> None:
    """Remove the webhooks, so that clients can write to the cluster after this process has ended. Logs a failure."""
    for resource in (MUTATING_WEBHOOK_CONFIGURATIONS, VALIDATING_WEBHOOK_CONFIGURATIONS):
        try:
            await client.delete(resource, ObjectKey("", CONFIGURATION))
        except NotFound:
            pass
        except KubeError as error:
            log.warning("webhooks are still registered", object=f"{resource.kind} {CONFIGURATION}", error=str(error))
