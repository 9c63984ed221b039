"""The trial of an installation: webhooks refuse an invalid graph, and a small graph answers a chat completion."""

import asyncio
import json
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import aiohttp
from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey
from dynamo_shared.kube import Conflict, KubeClient, NotFound, get_if_present

from dynamo_ctl.commands.bootstrap import webhook_check
from dynamo_ctl.commands.bootstrap.plan import CREATED_BY
from dynamo_ctl.errors import CtlError, ExitCode

FIELD_MANAGER = "dynamo-trial"
MODEL_NAME = "trial"
FRONTEND_PORT = 8000
#: Interval between two reads of the graph. Seconds.
PAUSE = 2.0
#: Time-out of one answer of the frontend. Seconds.
ANSWER_WITHIN = 20.0
#: By default the runtime listens on IPv4. The pod's address has the family of the cluster.
_LISTENING = [
    {"name": name, "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    for name in ("DYN_HTTP_HOST", "DYN_SYSTEM_HOST")
]
#: Pods communicate over TCP and ZeroMQ: the trial needs no NATS and no etcd for workloads.
_PLANES = ("--discovery-backend", "kubernetes", "--request-plane", "tcp", "--event-plane", "zmq")


@dataclass(frozen=True, slots=True)
class Trial:
    """The Dynamo runtime's image, a model (a name, or a folder of the image), and a time-out in seconds."""

    key: ObjectKey
    image: str
    model: str
    timeout: float
    webhooks: bool


async def carry_out(trial: Trial, kubeconfig: Path | None, context: str | None) -> str:
    """Run the trial. Returns the text of the answer. Raises CtlError with the failed step. Always deletes the graph.

    If a graph of that name exists that no trial created, it stays, and a CtlError is raised.
    """
    async with await KubeClient.open(kubeconfig=kubeconfig, context=context, field_manager=FIELD_MANAGER) as kube:
        if trial.webhooks:
            await webhook_check.refuse(kube, trial.key.namespace)
        uid = await _create_graph(kube, trial)
        try:
            async with asyncio.timeout(trial.timeout):
                await _wait_until_successful(kube, trial.key)
                return await _wait_for_answer(trial.key)
        except (TimeoutError, NotFound):
            raise CtlError(await _failure_reason(kube, trial), ExitCode.NOT_READY) from None
        finally:
            with suppress(NotFound, Conflict):
                await kube.delete(DYNAMO_GRAPH_DEPLOYMENTS, trial.key, uid=uid)


def graph(trial: Trial) -> KubeObject:
    """A frontend and a mocker, which restricted namespaces accept."""
    mocker = ("--model-path", trial.model, "--model-name", MODEL_NAME, "--speedup-ratio", "10", *_PLANES)
    components = [
        _component("Frontend", "frontend", trial.image, ["-m", "dynamo.frontend", *_PLANES]),
        _component("Mocker", "worker", trial.image, ["-m", "dynamo.mocker", *mocker]),
    ]
    return {
        **DYNAMO_GRAPH_DEPLOYMENTS.type_meta,
        "metadata": {
            "name": trial.key.name,
            "namespace": trial.key.namespace,
            "labels": {CREATED_BY: FIELD_MANAGER},
        },
        "spec": {"backendFramework": "vllm", "components": components, "env": _LISTENING},
    }


def _component(name: str, type_: str, image: str, arguments: list[str]) -> KubeObject:
    container = {
        "name": "main",
        "image": image,
        "command": ["python3"],
        "args": arguments,
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    security = {"runAsNonRoot": True, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}}
    pod = {"securityContext": security, "containers": [container]}
    return {"name": name, "type": type_, "replicas": 1, "podTemplate": {"spec": pod}}


async def _create_graph(kube: KubeClient, trial: Trial) -> str:
    """Create the trial's graph. Returns its uid."""
    desired, existing = graph(trial), await get_if_present(kube, DYNAMO_GRAPH_DEPLOYMENTS, trial.key)
    if existing is None:
        created = await kube.create(DYNAMO_GRAPH_DEPLOYMENTS, desired)
    elif objects.labels(existing).get(CREATED_BY) == FIELD_MANAGER:
        # A trial that was killed left this graph.
        created = await kube.apply(DYNAMO_GRAPH_DEPLOYMENTS, objects.of_uid(desired, objects.uid(existing)))
    else:
        raise CtlError(f"graph {trial.key} exists and was not created by a trial: choose another --name")
    return objects.uid(created)


async def _wait_until_successful(kube: KubeClient, key: ObjectKey) -> None:
    while True:
        graph = await kube.get(DYNAMO_GRAPH_DEPLOYMENTS, key)
        if graph.get("status", {}).get("state") == "successful":
            return
        await asyncio.sleep(PAUSE)


async def _wait_for_answer(key: ObjectKey) -> str:
    """Repeat the request until it succeeds: the frontend discovers the model shortly after its worker is ready."""
    url = f"http://{key.name}-frontend.{key.namespace}:{FRONTEND_PORT}/v1/chat/completions"
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=ANSWER_WITHIN)) as session:
        while True:
            with suppress(aiohttp.ClientError, TimeoutError):
                if (answer := await _answer(session, url)) is not None:
                    return answer
            await asyncio.sleep(PAUSE)


async def _answer(session: aiohttp.ClientSession, url: str) -> str | None:
    """The text of a chat completion; None for any other answer."""
    body = {"model": MODEL_NAME, "max_tokens": 8, "messages": [{"role": "user", "content": "Are you there?"}]}
    async with session.post(url, json=body) as response:
        return text_of(await response.read()) if response.status == 200 else None


def text_of(content: bytes) -> str | None:
    """The text of a chat completion; None for other content, for example a page of a proxy in front of the frontend."""
    try:
        return str(json.loads(content)["choices"][0]["message"]["content"])
    except (ValueError, LookupError, TypeError):
        return None


async def _failure_reason(kube: KubeClient, trial: Trial) -> str:
    try:
        status = (await kube.get(DYNAMO_GRAPH_DEPLOYMENTS, trial.key)).get("status", {})
    except NotFound:
        return f"graph {trial.key} was deleted meanwhile"
    ready = next((each for each in status.get("conditions", ()) if each["type"] == "Ready"), None)
    if status.get("state") == "successful":
        return f"graph {trial.key} is successful, but its frontend did not answer within {trial.timeout:g} s"
    why = f": {ready['message']}" if ready else "; no service reconciles it: see /readyz of watcher and pod-builder"
    return f"graph {trial.key} is {status.get('state', 'not reconciled')} after {trial.timeout:g} s{why}"
