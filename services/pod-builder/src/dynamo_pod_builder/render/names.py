"""Names of rendered objects, and Kubernetes' limits for them."""

import hashlib
import re
from collections.abc import Iterable

from dynamo_shared.api import component_names
from dynamo_shared.api.base_models import base_model_hash

from dynamo_pod_builder.render.errors import RenderError

#: Names of Services (RFC 1035) and values of labels: both have at most 63 characters.
MAX_LABEL = 63

#: Followed by the hash of the model.
MODEL_SERVICE = "dynamo-model-"

#: Grove's limit for the names of a set, its scaling group and its clique together, and the minimum for the set.
_GROVE_BUDGET = 45
_SHORTEST_SET = 8

#: StatefulSets run the pods of a LeaderWorkerSet, one for each group: a label of its pods has the name with the group's
#: number, and a hash of ten characters.
_LONGEST_GROUPS = MAX_LABEL - len("-999") - len("-0123456789")

PLANNER_ACCOUNT = "planner-serviceaccount"
EPP_ACCOUNT = "epp-serviceaccount"

#: Other services use these names, too.
component_deployment = component_names.component_deployment
service = component_names.service

_NOT_IN_LABELS = re.compile(r"[^A-Za-z0-9_.-]")
_LABEL_EDGE = re.compile(r"[^A-Za-z0-9]+$")


def model_label(model: str) -> str:
    """Name of a model as a label value: `Qwen/Qwen3-0.6B` is `Qwen--Qwen3-0.6B`, as in the Hugging Face cache."""
    value = _NOT_IN_LABELS.sub("-", model.replace("/", "--"))[:MAX_LABEL]
    return value.strip("-_.")


def discovery_account(graph: str) -> str:
    """Service account of pods that find each other through Kubernetes."""
    return f"{graph}-k8s-service-discovery"


def clique(component: str, role: str = "") -> str:
    """Clique of a component, or of one role in the component's groups."""
    return f"{component.lower()}-{role}" if role else component.lower()


def pod_clique_set(graph: str, parts: Iterable[tuple[str, ...]]) -> str:
    """Name of a graph's PodCliqueSet: the graph's, shortened if Grove's pod names would become too long.

    `parts`: the names below it from which pod names are built: a clique, or a scaling group and its longest clique.
    """
    budget = max(_SHORTEST_SET, _GROVE_BUDGET - max((sum(map(len, each)) for each in parts), default=0))
    return _shortened(graph, budget)


def leader_worker_set(component_deployment: str) -> str:
    """Name of a component deployment's LeaderWorkerSet: the same, shortened if its pods' labels would be too long."""
    if len(component_deployment) <= _LONGEST_GROUPS:
        return component_deployment
    return f"{component_deployment[: _LONGEST_GROUPS - 9]}-{_fnv1a(component_deployment):08x}"


def leader_worker_set_of_operator(component_deployment: str) -> str:
    """The LeaderWorkerSet's name in the reference since 1.3: no Service of the component has it."""
    return f"{component_deployment}-0"


def _shortened(name: str, longest: int) -> str:
    """The name, or its beginning and a hash of it, shortened as in the reference."""
    return name if len(name) <= longest else f"{name[: longest - 5]}-{_fnv1a(name) & 0xFFFF:04x}"


def _fnv1a(text: str) -> int:
    """32-bit FNV-1a, like Go's hash/fnv."""
    value = 0x811C9DC5
    for byte in text.encode():
        value = (value ^ byte) * 0x01000193 & 0xFFFFFFFF
    return value


def ray_service(component_deployment: str) -> str:
    """Name of the headless Service of a component's Ray head, which other programs also derive."""
    return _shortened(f"{service(component_deployment)}-ray", MAX_LABEL)


def model_service(model: str) -> str:
    """Headless Service that lists the workers of a model."""
    return f"{MODEL_SERVICE}{base_model_hash(model)}"


def claim_template(graph: str, component: str) -> str:
    """ResourceClaimTemplate for the GPUs of a component's pods."""
    return f"{graph}-{component.lower()}-gpu"


def rank_claim(component: str, rank: int) -> str:
    """Claim for the GPUs that the pods of one rank share."""
    return f"{component.lower()}-gpu-rank-{rank}"


def wait_script(graph: str) -> str:
    """ConfigMap with the script that waits for a group's leader."""
    return f"{graph}-wait-leader-script"


def epp_config_map(graph: str) -> str:
    """ConfigMap of an endpoint picker whose configuration is in the graph."""
    return f"{graph}-epp-config"


def inference_pool(graph: str) -> str:
    """InferencePool from which an endpoint picker chooses."""
    return f"{graph}-pool"


def shortened_label(text: str) -> str:
    """A label value for users to read: truncated if too long, with a hash so that it stays unique."""
    if len(text) <= MAX_LABEL:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    return f"{_LABEL_EDGE.sub('', text[: MAX_LABEL - 9])}-{digest}"


def check(component: str, component_deployment_name: str, dynamo_namespace_name: str) -> None:
    """Raise RenderError if Kubernetes would refuse a derived name: names become Services and label values."""
    service_name = service(component_deployment_name)
    for what, name in (("Service", service_name), ("Dynamo namespace", dynamo_namespace_name)):
        if len(name) > MAX_LABEL:
            raise RenderError(
                component,
                "name",
                f"the {what} would be named {name!r}, {len(name)} characters; Kubernetes allows {MAX_LABEL}",
                f"shorten the names of which it consists by {len(name) - MAX_LABEL} characters",
            )
    if not (service_name[:1].isascii() and service_name[:1].isalpha()):
        raise RenderError(
            component,
            "name",
            f"the Service would be named {service_name!r}; Kubernetes requires a letter at the start",
            "start the name of the deployment with a letter",
        )
