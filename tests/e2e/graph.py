"""Graphs of real frontends and mocker workers, as a user would write them."""

from collections.abc import Sequence

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENTS

from .images import MODEL_FOLDER

MODEL_NAME = "tiny"
#: Requests between pods over TCP, events over ZeroMQ: a graph that needs no NATS and no etcd.
PLANES = ("--discovery-backend", "kubernetes", "--request-plane", "tcp", "--event-plane", "zmq")
FRONTEND, PREFILL, DECODE = "Frontend", "Prefill", "Decode"
#: A frontend tries a request again whose worker left discovery before it answered; it does so only with a limit above 0.
MIGRATION = [{"name": "DYN_MIGRATION_LIMIT", "value": "3"}]


def disaggregated(namespace: str, image: str, name: str = "mocked") -> KubeObject:
    """A frontend, a prefill and a decode worker; the decode workers are scaled through an adapter."""
    return _graph(
        namespace,
        name,
        [
            _component(
                FRONTEND, "frontend", image, ["-m", "dynamo.frontend", "--router-mode", "kv", *PLANES], MIGRATION
            ),
            _component(PREFILL, "prefill", image, _mocker("prefill")),
            _component(DECODE, "decode", image, _mocker("decode")) | {"scalingAdapter": {}},
        ],
    )


def without_a_model(namespace: str, image: str, name: str = "broken") -> KubeObject:
    """A worker whose model is not where it looks for it, so that its process ends."""
    return _graph(namespace, name, [_component(DECODE, "worker", image, _mocker("agg", "/nowhere"))])


def _graph(namespace: str, name: str, components: list[KubeObject]) -> KubeObject:
    spec = {"backendFramework": "vllm", "components": components}
    return {**DYNAMO_GRAPH_DEPLOYMENTS.type_meta, "metadata": {"name": name, "namespace": namespace}, "spec": spec}


def _mocker(mode: str, model: str = MODEL_FOLDER) -> list[str]:
    return [
        *("-m", "dynamo.mocker", "--model-path", model, "--model-name", MODEL_NAME),
        *("--num-gpu-blocks-override", "512", "--block-size", "16", "--speedup-ratio", "10"),
        *("--disaggregation-mode", mode, *PLANES),
        *(("--bootstrap-ports", "12345") if mode == "prefill" else ()),
    ]


def _component(
    name: str, type_: str, image: str, arguments: list[str], variables: Sequence[KubeObject] = ()
) -> KubeObject:
    container = {
        "name": "main",
        "image": image,
        # There is no registry to pull it from.
        "imagePullPolicy": "Never",
        "command": ["python3"],
        "args": arguments,
        "env": list(variables),
    }
    return {"name": name, "type": type_, "replicas": 1, "podTemplate": {"spec": {"containers": [container]}}}
