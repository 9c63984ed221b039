"""Ports of a graph's pods and of the platform itself. Probes, Services and PodMonitors refer to them by name."""

from dataclasses import dataclass
from functools import partial

from dynamo_shared.api.registry.catalog import Catalog, Stability

CATALOG = Catalog("Ports", "All ports use TCP. Probes, Services and PodMonitors refer to them by name.", "Port", "Name")


@dataclass(frozen=True, slots=True)
class Port:
    """A container or Service port, by name and number."""

    name: str
    number: int

    def container_port(self) -> dict[str, str | int]:
        """Entry of a container's `ports`; it states the protocol, so that a comparison with the stored object shows no drift."""
        return {"name": self.name, "containerPort": self.number, "protocol": "TCP"}


def _add(
    number: int,
    purpose: str,
    *,
    name: str = "",
    read_by: str,
    where: str,
    set_by: str = "",
    stability: Stability = Stability.STABLE,
) -> Port:
    values = f"`{name}`" if name else ""
    CATALOG.add(f"{number}", purpose, set_by=set_by, read_by=read_by, values=values, where=where, stability=stability)
    return Port(name, number)


_evolving = partial(_add, stability=Stability.EVOLVING)

HTTP = _add(
    8000,
    "OpenAI-compatible API of the frontend, with /live, /health and /metrics.",
    name="http",
    read_by="Services, Ingresses, InferencePools, PodMonitors, clients",
    where="frontends",
)
SYSTEM = _add(
    9090,
    "Health, metrics and LoRA management of a worker.",
    name="system",
    read_by="probes, model Services, model-discovery, PodMonitors",
    where="workers, planners",
)
NIXL = _add(
    19090,
    "Telemetry of NIXL, which moves KV caches between workers.",
    name="nixl",
    read_by="PodMonitors",
    where="workers",
)
PLANNER_METRICS = _add(9085, "Metrics of the planner.", name="metrics", read_by="PodMonitors", where="planners")
EPP_GRPC = _add(
    9002,
    "Endpoint picker: the gateway calls it for each request.",
    name="grpc",
    read_by="Services, InferencePools",
    where="endpoint pickers",
)
EPP_HEALTH = _add(
    9003, "gRPC health service of the endpoint picker.", name="grpc-health", read_by="probes", where="endpoint pickers"
)
EPP_METRICS = _add(
    9090, "Metrics of the endpoint picker.", name="metrics", read_by="PodMonitors", where="endpoint pickers"
)
FORWARD_PASS_METRICS = _add(
    20380,
    "Forward-pass metrics of an engine; engine i of a failover group listens on this port plus i.",
    read_by="Dynamo runtime, planner",
    where="workers",
)
MPI_SSH = _add(
    2222,
    "SSH server of TensorRT-LLM workers: the leader starts their ranks over it.",
    read_by="mpirun of the leader, probes",
    where="multi-node TensorRT-LLM workers",
)
VLLM_RAY = _add(
    6379,
    "Head of the Ray cluster with which vLLM uses several nodes.",
    read_by="Ray workers",
    where="multi-node vLLM leaders, engines with elastic experts",
)
VLLM_MASTER = _add(
    29500, "Rendezvous of vLLM's multiprocessing executor.", read_by="vLLM workers", where="multi-node vLLM leaders"
)
VLLM_DATA_PARALLEL_RPC = _add(
    13445, "Coordination of vLLM's data-parallel engines.", read_by="vLLM workers", where="multi-node vLLM leaders"
)
SGLANG_DIST_INIT = _add(
    29500, "Rendezvous of SGLang's ranks.", read_by="SGLang workers", where="multi-node SGLang leaders"
)
VLLM_NIXL_SIDE_CHANNEL = _evolving(
    5600,
    "NIXL's side channel of an engine; engine i of a failover group listens on this port plus i.",
    read_by="vLLM workers",
    where="vLLM workers of failover groups",
)
VLLM_KV_EVENTS = _evolving(
    20080,
    "KV cache events of an engine; engine i of a failover group listens on this port plus i.",
    read_by="Dynamo runtime",
    where="vLLM workers of failover groups",
)
VLLM_SHADOW_MASTER = _evolving(
    29600,
    "Rendezvous of the second engine of a failover group.",
    read_by="vLLM workers",
    where="vLLM workers of failover groups",
)
PLANNER_DASHBOARD = _evolving(
    8080,
    "Live page of the planner; live_dashboard_port of its configuration.",
    set_by="planner",
    read_by="people",
    where="planners",
)
PLANNER_CONTROL = _evolving(
    9086,
    "API for the planner's budgets, which can change at run time; only on localhost; control_api_port of its configuration.",
    set_by="planners after 1.1",
    read_by="people",
    where="planners",
)
DCGM_EXPORTER = _add(
    9400,
    "Metrics of GPUs, from which the profiler discovers hardware.",
    set_by="DCGM exporter",
    read_by="planner (GPU discovery)",
    where="DCGM exporters",
)
PLATFORM_METRICS = _add(
    8080,
    "/metrics of the platform's services; `server.metrics.port`.",
    set_by="every service of the platform",
    read_by="Prometheus",
    where="pods of the platform",
)
PLATFORM_HEALTH = _add(
    8081,
    "/healthz and /readyz of the platform's services; `server.healthProbe.port`.",
    set_by="every service of the platform",
    read_by="probes",
    where="pods of the platform",
)
PLATFORM_WEBHOOK = _add(
    9443,
    "Admission and conversion, with TLS; `server.webhook.port`, behind port 443 of the Service.",
    set_by="admission",
    read_by="the API server",
    where="pods of the platform",
)
