"""Admission on this machine: an address on loopback that a local API server can call, and what it needs in the cluster."""

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
#: Where the Secret with the certificate goes, unless the settings say otherwise.
NAMESPACE = "dynamo-system"
#: v1alpha1, so that the way there and back is tried, too.
_PROBE = {
    **DYNAMO_GRAPH_DEPLOYMENTS.at("v1alpha1").type_meta,
    "metadata": {"name": "dynamo-admission-probe", "namespace": "default"},
    "spec": {"services": {"Frontend": {"componentType": "frontend", "replicas": 1}}},
}


def named(settings: Settings) -> bool:
    """Whether the settings say where the API server finds the webhooks."""
    return bool(settings.platform.admission.url or settings.server.webhook.service_name)


def on_loopback(settings: Settings, port: int) -> Settings:
    """The same, with webhooks at a port of this machine: for an API server that runs on it."""
    webhook = settings.server.webhook.model_copy(update={"host": LOOPBACK, "port": port})
    named = settings.platform.admission
    update = {"url": f"https://{LOOPBACK}:{port}", "namespace": named.namespace or NAMESPACE}
    # There is no other replica to which the API server could go meanwhile.
    drain = named.drain if "drain" in named.model_fields_set else 0.0
    admission = named.model_copy(update={**update, "drain": drain})
    server = settings.server.model_copy(update={"webhook": webhook})
    return with_platform(settings.model_copy(update={"server": server}), admission=admission)


def is_local(server: str) -> bool:
    """Whether the URL of an API server is one of this machine."""
    host = urlsplit(server).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


async def make_namespace(client: KubeClient, settings: Settings) -> None:
    """Make the namespace of the certificate's Secret, where it is not there."""
    name = settings.platform.admission.namespace or NAMESPACE
    with contextlib.suppress(AlreadyExists):
        await client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})


async def try_out(client: KubeClient) -> None:
    """See that the API server reaches the webhooks. CtlError, and the webhooks are withdrawn, where it does not.

    An API server in a container has a loopback of its own: left registered, unreachable webhooks would stop every write.
    """
    try:
        await client.create(DYNAMO_GRAPH_DEPLOYMENTS.at("v1alpha1"), _PROBE, dry_run=True)
    except KubeError as error:
        if "webhook" not in error.message:
            return  # It was asked; that this user may not create graphs is another matter.
        await withdraw(client)
        raise CtlError(
            f"the API server does not reach the webhooks on this machine ({error.message}); set platform.admission.url to "
            "an https address by which it does, and server.webhook.host to an address that listens there",
            ExitCode.UNREACHABLE,
        ) from error


async def withdraw(client: KubeClient) -> None:
    """Take the webhooks back, so that a cluster can be written to without us. Says so where that fails."""
    for resource in (MUTATING_WEBHOOK_CONFIGURATIONS, VALIDATING_WEBHOOK_CONFIGURATIONS):
        try:
            await client.delete(resource, ObjectKey("", CONFIGURATION))
        except NotFound:
            pass
        except KubeError as error:
            log.warning("webhooks are still registered", object=f"{resource.kind} {CONFIGURATION}", error=str(error))
