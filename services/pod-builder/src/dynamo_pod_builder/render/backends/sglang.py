"""SGLang: the processes of a group connect through the leader's address."""

from dynamo_shared.api.containers import main_container
from dynamo_shared.api.engines.started import is_own_launch, line_of
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import env, ports
from dynamo_shared.api.runtime_version import features_of

from dynamo_pod_builder.render.backends import commandline, rank_telemetry
from dynamo_pod_builder.render.backends.base import EngineBackend, without_probes
from dynamo_pod_builder.render.context import PodContext
from dynamo_pod_builder.render.pod.env import var
from dynamo_pod_builder.render.pod.placement import Group, PodRole
from dynamo_pod_builder.render.pod.topology_names import missing_topology_names

# The flag of a worker for an embedding model.
_EMBEDDINGS = "--embedding-worker"


class Sglang(EngineBackend):
    """SGLang workers."""

    name = "sglang"

    def update_container(self, container: KubeObject, context: PodContext) -> None:
        """On several nodes: set the leader's address, the node count, and this node's rank (behaviour, section 4.4)."""
        rank_telemetry.declare_ports(container, context)
        _without_canary(container, context)
        placement = context.placement
        if placement.group is None or context.has_own_commands:
            return
        if is_own_launch(line_of(container), self.name):
            container["env"] += missing_topology_names(container, context)
        else:
            self._connect(container, context, placement.group)
        if placement.role is PodRole.WORKER:
            without_probes(container)

    def _connect(self, container: KubeObject, context: PodContext, group: Group) -> None:
        placement = context.placement
        flags = ["--dist-init-addr", f"{group.leader_host}:{ports.SGLANG_DIST_INIT.number}"]
        flags += ["--nnodes", str(placement.nodes), "--node-rank", placement.rank]
        line = commandline.read(context.component, container)
        container["command"], container["args"] = line.with_flags(flags, self.name, shell=placement.rank_needs_shell)


def _without_canary(container: KubeObject, context: PodContext) -> None:
    """Disable canary requests to embedding workers of a runtime 1.5, in place: with them, they never become ready.

    That runtime asks every worker for a token (dynamo#14680). If the author configured canary requests, that stays.
    """
    features = features_of(context.spec.runtime_version_override)
    if not features.canary or features.embedding_canary:
        return
    own = {each["name"] for each in (main_container(context.template) or {}).get("env") or ()}
    if own & {env.DYN_HEALTH_CHECK_ENABLED, env.DYN_HEALTH_CHECK_PAYLOAD}:
        return
    parts = [*(container.get("command") or ()), *(container.get("args") or ())]
    if any(_EMBEDDINGS in part.split() for part in parts):
        off = var(env.DYN_HEALTH_CHECK_ENABLED, "false")
        container["env"] = [off if each["name"] == off["name"] else each for each in container["env"]]
