"""`make fuzz-dynadmin`: schemathesis against a running dynadmin on a local cluster; streams and logs are left out.

Fails on a 5xx answer, and on a status, media type or body that the document does not describe. Each failure is printed
with a curl command. `--examples` sets the number of requests for each operation, `--seed` selects them.
"""

import argparse
import asyncio
import logging
import os
import sys
import tempfile
from pathlib import Path

import structlog
from dynamo_ctl.commands.crds.definitions import install_definitions
from dynamo_ctl.simulations.estimation import Estimation
from dynamo_devcluster.controlplane import ControlPlane
from dynamo_devcluster.options import ControlPlaneOptions
from dynamo_devcluster.programs import Programs
from dynamo_devcluster.servers import NatsServer
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENTS, NAMESPACES
from dynamo_shared.kube import KubeClient

from tests.integration.admission import admission_platform
from tests.integration.dynadmin import EVERYTHING, Api, account, cluster_wide, dynadmin

ROOT = Path(__file__).parents[2]
TOOLS = ROOT / ".dynamo" / "fuzz-tools"
NAMESPACE = "fuzz"
#: Streams never end, logs need pods, a login redirects elsewhere, and `callback` is its second half.
LEFT_OUT = ("chat", "logIn", "finishLogIn", "estimate")
#: `positive_data_acceptance` and `negative_data_rejection` would need facts in the document that only the cluster has.
CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
READS = {"verbs": ["get", "list", "watch"], "apiGroups": ["", "events.k8s.io"], "resources": ["*"]}


async def run(examples: int, seed: int) -> int:
    """Start the servers, send the requests; the exit code."""
    # Log lines of requests would hide the output of schemathesis.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    programs = Programs()
    options = ControlPlaneOptions(controller_manager=False, scheduler=False, kwok_nodes=1, prepare=install_definitions)
    with tempfile.TemporaryDirectory(prefix="dynamo-fuzz-") as folder:
        nats = NatsServer(await programs.obtain("nats-server"), Path(folder) / "nats")
        limits = {"REQUESTS_PER_SECOND": "100000", "BURST": "1000000"}
        async with (
            ControlPlane(options, programs) as plane,
            nats,
            await KubeClient.open(kubeconfig=plane.kubeconfig, field_manager="dynamo-fuzz") as kube,
            # It converts, because bodies are of every served version.
            admission_platform(plane),
            dynadmin(plane.kubeconfig, nats.url, Estimation, **limits) as api,
        ):
            await _prepared(kube, api)
            return await _schemathesis(api, examples, seed)


async def _prepared(kube: KubeClient, api: Api) -> None:
    """Create a namespace with a graph, and a user who may do everything there."""
    await kube.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    api.token = await account(kube, NAMESPACE, "fuzzer", EVERYTHING)
    await cluster_wide(kube, NAMESPACE, "fuzzer", READS)
    spec = {"components": [{"name": "Frontend", "type": "frontend", "replicas": 1}]}
    graph = {**DYNAMO_GRAPH_DEPLOYMENTS.type_meta, "metadata": {"name": "shop", "namespace": NAMESPACE}, "spec": spec}
    await kube.create(DYNAMO_GRAPH_DEPLOYMENTS, graph)


async def _schemathesis(api: Api, examples: int, seed: int) -> int:
    arguments = [
        *(sys.executable, "-m", "schemathesis.cli", "run", f"{api.url}/api/v1/openapi.json"),
        *("--url", api.url, "--header", f"Authorization: Bearer {api.token}", "--header", "Accept: application/json"),
        *("--checks", CHECKS, "--phases", "coverage,fuzzing", "--max-examples", str(examples)),
        *("--seed", str(seed), "--exclude-operation-id-regex", "Logs$", "--request-timeout", "20"),
        *(each for name in LEFT_OUT for each in ("--exclude-operation-id", name)),
        *("--suppress-health-check", "all", "--continue-on-failure", "--warnings", "off"),
    ]
    environment = {**os.environ, "PYTHONPATH": str(TOOLS), "SCHEMATHESIS_CONFIG": ""}
    (folder := ROOT / ".dynamo" / "fuzz").mkdir(parents=True, exist_ok=True)
    (folder / "schemathesis.toml").write_text(_CONFIGURATION)
    arguments[3:3] = ["--config-file", str(folder / "schemathesis.toml")]
    process = await asyncio.create_subprocess_exec(*arguments, env=environment, cwd=folder)
    return await process.wait()


#: Half of all paths lead to existing objects; no stream is requested.
_CONFIGURATION = f"""
[parameters]
"path.namespace" = "{NAMESPACE}"
"query.watch" = false
"""


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--examples", type=int, default=20)
    parser.add_argument("--seed", type=int, default=11)
    given = parser.parse_args()
    sys.exit(asyncio.run(run(given.examples, given.seed)))
