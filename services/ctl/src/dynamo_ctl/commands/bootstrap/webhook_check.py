"""Checks through the API server that the webhooks work: they must refuse an invalid graph with their own message."""

import asyncio
from pathlib import Path

from dynamo_shared.aio import Backoff
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENTS
from dynamo_shared.kube import Forbidden, KubeClient, KubeError, Unauthorized

from dynamo_ctl.errors import CtlError, ExitCode

FIELD_MANAGER = "dynamo-webhook-check"
#: The graph's Services would get this name, but their names must begin with a letter. No schema refuses it.
WRONG_NAME = "0-dynamo-webhook-check"
#: Interval between two attempts: the first and the longest. Seconds.
FIRST_RETRY, LAST_RETRY = 0.5, 5.0
#: The API server writes this before the message of a webhook.
REFUSED = "denied the request"


async def check(namespace: str, within: float, kubeconfig: Path | None, context: str | None) -> None:
    """Return when the webhooks work.

    Raises KubeError if the caller lacks the right to create graphs; CtlError with the last failure if the webhooks do
    not work within `within` seconds.
    """
    last = "the API server did not answer"

    async def repeat(kube: KubeClient) -> None:
        nonlocal last
        backoff = Backoff(FIRST_RETRY, LAST_RETRY)
        while True:
            try:
                return await refuse(kube, namespace)
            except CtlError as error:
                last = str(error)
            await asyncio.sleep(backoff.next())

    async with await KubeClient.open(kubeconfig=kubeconfig, context=context, field_manager=FIELD_MANAGER) as kube:
        try:
            await asyncio.wait_for(repeat(kube), within)
        except TimeoutError:
            raise CtlError(f"after {within:g} s: {last}", ExitCode.NOT_READY) from None


async def refuse(kube: KubeClient, namespace: str) -> None:
    """Check that the webhooks refuse an invalid graph; nothing is created. Raises CtlError if they do not, KubeError if
    the caller lacks the right to create graphs.
    """
    try:
        await kube.create(DYNAMO_GRAPH_DEPLOYMENTS, wrong_graph(namespace), dry_run=True)
    except KubeError as error:
        if REFUSED in error.message:
            return
        if isinstance(error, Forbidden | Unauthorized):
            # Not from the webhooks: the API server checks the right to create graphs before it calls them.
            raise
        raise CtlError(f"the webhooks do not answer: {error}") from error
    raise CtlError(f"the webhooks accepted the invalid graph {WRONG_NAME}: check that they are registered")


def wrong_graph(namespace: str) -> KubeObject:
    """A graph that the schema accepts and the webhooks refuse."""
    return {
        **DYNAMO_GRAPH_DEPLOYMENTS.type_meta,
        "metadata": {"name": WRONG_NAME, "namespace": namespace},
        "spec": {"backendFramework": "vllm", "components": [{"name": "Frontend", "type": "frontend", "replicas": 1}]},
    }
