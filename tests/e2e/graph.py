"""Graphs of real frontends and mocker workers, as users write them."""

from collections.abc import Sequence

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENTS

from .images import MODEL_FOLDER

MODEL_NAME = "tiny"
#: Requests between pods use TCP and events use ZeroMQ, so the graph needs neither NATS nor etcd.
PLANES = ("--discovery-backend", "kubernetes", "--request-plane", "tcp", "--event-plane", "zmq")
FRONTEND, PREFILL, DECODE, WORKER = "Frontend", "Prefill", "Decode", "Worker"
#: A frontend retries a request if its worker left discovery before it answered, but only with a limit above 0.
MIGRATION = [{"name": "DYN_MIGRATION_LIMIT", "value": "3"}]


def aggregated(namespace: str, image: str, name: str) -> KubeObject:
    """A frontend and a worker."""
    return _graph(namespace, name, [_frontend(image), _component(WORKER, "worker", image, _mocker("agg"))])


def disaggregated(namespace: str, image: str, name: str = "mocked") -> KubeObject:
    """A frontend, a prefill and a decode worker; the decode workers are scaled through an adapter."""
    return _graph(
        namespace,
        name,
        [
            _frontend(image),
            _component(PREFILL, "prefill", image, _mocker("prefill")),
            _component(DECODE, "decode", image, _mocker("decode")) | {"scalingAdapter": {}},
        ],
    )


def without_a_model(namespace: str, image: str, name: str = "broken") -> KubeObject:
    """A worker whose model is missing, so that its process exits."""
    return _graph(namespace, name, [_component(DECODE, "worker", image, _mocker("agg", "/nowhere"))])


def next_to_an_engine(namespace: str, image: str, files: str, name: str = "sidecar") -> KubeObject:
    """A worker with a stand-in engine from ConfigMap `files`, and the Dynamo runtime as its sidecar."""
    worker = _component(WORKER, "worker", image, ["/engine/engine.py", MODEL_FOLDER, MODEL_NAME])
    pod = worker["podTemplate"]["spec"]
    (main,) = pod["containers"]
    main["volumeMounts"] = [{"name": "engine", "mountPath": "/engine"}]
    main["readinessProbe"] = {"grpc": {"port": 50051, "service": "vllm.Inference"}, "periodSeconds": 1}
    arguments = ["-m", "dynamo.vllm.sidecar", "--grpc-endpoint", "127.0.0.1:50051", *PLANES]
    pod["initContainers"] = [{**_container(image, arguments), "name": "runtime", "restartPolicy": "Always"}]
    pod["volumes"] = [{"name": "engine", "configMap": {"name": files}}]
    return _graph(namespace, name, [_frontend(image), worker])


def with_roles(namespace: str, image: str, name: str = "roles") -> KubeObject:
    """A worker on two nodes, whose leader serves once the other node has joined; each role has its own pod template."""
    meet = ["--distributed-executor-backend", "mp", "--node-rank", "$(DYNAMO_RANK)"]
    meet += ["--master-addr", "$(DYNAMO_LEADER_ADDRESS)"]
    roles = [
        {"name": role, "podTemplate": {"metadata": {"labels": {"plays": role}}, "spec": {"containers": [container]}}}
        for role, container in (
            ("leader", _container(image, ["-c", _LEADER, *_mocker("agg"), *meet])),
            ("worker", _container(image, ["-c", _WORKER, *meet])),
        )
    ]
    worker = {"name": WORKER, "type": "worker", "replicas": 1, "multinode": {"nodeCount": 2}, "roles": roles}
    return _graph(namespace, name, [_frontend(image), worker])


#: Command lines end with rank, leader address, port. Port probes send no data.
_LEADER = """
import os, socket, sys
server = socket.create_server(("", int(sys.argv[-1])))
while not (rank := server.accept()[0].recv(8)): pass
print("node", rank.decode(), "joined node", sys.argv[-5], flush=True)
os.execvp("python3", ["python3", *sys.argv[1:sys.argv.index("--distributed-executor-backend")]])
"""
_WORKER = """
import signal, socket, sys
socket.create_connection((sys.argv[-3], int(sys.argv[-1]))).sendall(sys.argv[-5].encode())
signal.pause()
"""


def _frontend(image: str) -> KubeObject:
    arguments = ["-m", "dynamo.frontend", "--router-mode", "kv", *PLANES]
    return _component(FRONTEND, "frontend", image, arguments, MIGRATION)


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
    container = {**_container(image, arguments), "env": list(variables)}
    return {"name": name, "type": type_, "replicas": 1, "podTemplate": {"spec": {"containers": [container]}}}


def _container(image: str, arguments: list[str]) -> KubeObject:
    # There is no registry to pull it from.
    return {"name": "main", "image": image, "imagePullPolicy": "Never", "command": ["python3"], "args": arguments}
