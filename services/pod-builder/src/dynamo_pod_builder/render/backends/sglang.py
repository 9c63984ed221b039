"""SGLang: the processes of a group meet at the leader's address."""

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import ports

from dynamo_pod_builder.render.backends import commandline
from dynamo_pod_builder.render.backends.base import EngineBackend, without_probes
from dynamo_pod_builder.render.context import PodContext
from dynamo_pod_builder.render.pod.placement import PodRole


class Sglang(EngineBackend):
    """SGLang workers."""

    name = "sglang"

    def update_container(self, container: KubeObject, context: PodContext) -> None:
        """On several nodes: where the leader is, how many there are, and which one this is (behaviour, section 4.4)."""
        placement = context.placement
        if placement.group is None or context.has_own_commands:
            return
        flags = ["--dist-init-addr", f"{placement.group.leader_host}:{ports.SGLANG_DIST_INIT.number}"]
        flags += ["--nnodes", str(placement.nodes), "--node-rank", placement.rank]
        line = commandline.read(context.component, container)
        container["command"], container["args"] = line.with_flags(flags, self.name, shell=placement.rank_needs_shell)
        if placement.role is PodRole.WORKER:
            without_probes(container)
