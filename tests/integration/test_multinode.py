"""Graphs whose replicas span nodes, on a cluster with LeaderWorkerSet, or where it is installed later."""

import base64

from cryptography.hazmat.primitives import serialization
from dynamo_devcluster.controlplane import ControlPlane
from dynamo_devcluster.servers import NatsServer
from dynamo_shared.api.resources import (
    CUSTOM_RESOURCE_DEFINITIONS,
    DYNAMO_GRAPH_DEPLOYMENTS,
    LEADER_WORKER_SETS,
    SECRETS,
    ObjectKey,
)
from dynamo_shared.kube import KubeClient
from dynamo_shared.kube.discovery import install_crds

from .leader_worker_sets import DEFINITION
from .platform import eventually, frontend, graph, platform, settings, until_state, worker


async def test_waiting_graphs_run_once_an_orchestrator_is_installed(
    kube: KubeClient, control_plane: ControlPlane, nats_server: NatsServer, namespace: str
) -> None:
    key = ObjectKey(namespace, "wide")
    wide = worker("Decode", "decode")
    wide["multinode"] = {"nodeCount": 2}
    narrow = {**worker("Trt"), "multinode": {"nodeCount": 2}}
    main = narrow["podTemplate"]["spec"]["containers"][0]
    main["command"] = ["python3", "-m", "dynamo.trtllm"]
    configured = settings(
        control_plane.kubeconfig, nats_server.url, MPI__SSH_SECRET_NAME="mpi-keys", MPI__SSH_SECRET_NAMESPACE="default"
    )
    try:
        async with platform(configured):
            await kube.create(DYNAMO_GRAPH_DEPLOYMENTS, graph(namespace, "wide", components=[frontend(), wide]))
            failed = await until_state(kube, key, "failed")
            assert "no multinode orchestrator available" in failed["status"]["conditions"][0]["message"]

            await install_crds(kube, [DEFINITION])
            await until_state(kube, key, "pending")
            (result,) = await eventually(lambda: kube.list(LEADER_WORKER_SETS, namespace), "a LeaderWorkerSet")
            assert result["spec"]["leaderWorkerTemplate"]["size"] == 2
            assert result["spec"]["networkConfig"] == {"subdomainPolicy": "UniquePerReplica"}

            available = {"type": "Available", "status": "True", "reason": "x", "message": ""}
            status = {"replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "conditions": [available]}
            metadata = {"name": result["metadata"]["name"], "namespace": namespace}
            await kube.apply_status(LEADER_WORKER_SETS, {**result, "metadata": metadata, "status": status})
            done = await until_state(kube, key, "successful")
            assert done["status"]["components"]["Decode"]["componentKind"] == "LeaderWorkerSet"

            await kube.create(
                DYNAMO_GRAPH_DEPLOYMENTS,
                graph(namespace, "keys", backendFramework="trtllm", components=[frontend(), narrow]),
            )
            secret = await eventually(lambda: _secret(kube, namespace), "the key pair in the graph's namespace")
            assert not await _secret(kube, "default"), "a pair for all namespaces opens the pods of each to the others"
            assert [owner["name"] for owner in secret["metadata"]["ownerReferences"]] == ["keys"]
            serialization.load_pem_private_key(base64.b64decode(secret["data"]["private.key"]), None)
    finally:
        await kube.delete(CUSTOM_RESOURCE_DEFINITIONS, ObjectKey("", str(DEFINITION["metadata"]["name"])))


async def _secret(kube: KubeClient, namespace: str):
    secrets = [each for each in await kube.list(SECRETS, namespace) if each["metadata"]["name"] == "mpi-keys"]
    return secrets[0] if secrets else None
