"""Whether the webhooks work, as the API server sees it: they refuse a wrong graph, in their own words."""

import asyncio
from pathlib import Path

from dynamo_shared.aio import Backoff
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENTS
from dynamo_shared.kube import Forbidden, KubeClient, KubeError, Unauthorized

from dynamo_ctl.errors import CtlError, ExitCode

FIELD_MANAGER = "dynamo-webhook-check"
#: Services of the graph would be named after it, and their names begin with a letter; no schema refuses it.
WRONG_NAME = "0-dynamo-webhook-check"
#: Between two attempts. Seconds: the first, and the longest.
FIRST_RETRY, LAST_RETRY = 0.5, 5.0
#: What the API server writes before the words of a webhook.
REFUSED = "denied the request"


async def check(namespace: str, within: float, kubeconfig: Path | None, context: str | None) -> None:
    """Return once the webhooks work.

    KubeError where the caller may not ask; CtlError with what was wrong last where they do not within so many seconds.
    """
    backoff, last = Backoff(FIRST_RETRY, LAST_RETRY), "the API server did not answer"
    async with await KubeClient.open(kubeconfig=kubeconfig, context=context, field_manager=FIELD_MANAGER) as kube:
        try:
            async with asyncio.timeout(within):
                while True:
                    try:
                        return await refuse(kube, namespace)
                    except CtlError as error:
                        last = str(error)
                    await asyncio.sleep(backoff.next())
        except TimeoutError:
            raise CtlError(f"after {within:g} s: {last}", ExitCode.NOT_READY) from None


async def refuse(kube: KubeClient, namespace: str) -> None:
    """See a wrong graph refused; nothing is created. CtlError where it is not, KubeError where the caller may not ask."""
    try:
        await kube.create(DYNAMO_GRAPH_DEPLOYMENTS, wrong_graph(namespace), dry_run=True)
    except KubeError as error:
        if REFUSED in error.message:
            return
        if isinstance(error, Forbidden | Unauthorized):
            # Not of the webhooks: who may not create graphs is refused before they are asked.
            raise
        raise CtlError(f"the webhooks do not answer: {error}") from error
    raise CtlError(f"the webhooks accepted the invalid graph {WRONG_NAME}: check that they are registered")


def wrong_graph(namespace: str) -> KubeObject:
    """A graph that the schema lets in and the webhooks do not."""
    return {
        **DYNAMO_GRAPH_DEPLOYMENTS.type_meta,
        "metadata": {"name": WRONG_NAME, "namespace": namespace},
        "spec": {"backendFramework": "vllm", "components": [{"name": "Frontend", "type": "frontend", "replicas": 1}]},
    }
