"""Where KV caches may move between prefill and decode workers: a policy is complete and immutable."""

from typing import Any

from dynamo_shared.api.embedded.rules.names import wrong_key
from dynamo_shared.api.field_errors import shown
from dynamo_shared.api.rules import Location
from dynamo_shared.api.untrusted.reading import mapping, text
from dynamo_shared.api.validation.facts import Facts
from dynamo_shared.api.validation.rule_set import GRAPH, UPDATED, RuleSet, Violations, broken
from dynamo_shared.api.validation.view import GraphView

KV_TRANSFER = RuleSet("KV transfer", (GRAPH,))
CHANGES_OF_KV_TRANSFER = RuleSet("KV transfer", (GRAPH,), UPDATED)
ABOUT_KV_TRANSFER = RuleSet("KV transfer", (GRAPH,))

AT: Location = ("spec", "experimental", "kvTransferPolicy")
PREFERRED = "preferred"

_NO_LABEL = "required: the label of nodes with the {domain} of each node"
_NO_TOPOLOGY = "is not supported: write labelKey, the node label of the ClusterTopology for {domain}"
_NO_KEY = "{problem}"  # the messages for keys of labels


@KV_TRANSFER.rule(_NO_LABEL, _NO_TOPOLOGY, _NO_KEY)
def a_policy_has_a_label_of_nodes(graph: GraphView, _facts: Facts) -> Violations:
    """A policy names a label of nodes. The reference can also use a ClusterTopology; this platform does not read it."""
    policy = policy_of(graph)
    if policy is None:
        return
    domain, label = shown(policy.get("domain")), policy.get("labelKey")
    if policy.get("clusterTopologyName"):
        yield (*AT, "clusterTopologyName"), _NO_TOPOLOGY.format(domain=domain)
    elif not label:
        yield (*AT, "labelKey"), _NO_LABEL.format(domain=domain)
    if problem := wrong_key(text(label)) if label else "":
        yield (*AT, "labelKey"), problem


_NO_WEIGHT = "required with enforcement preferred: a number from 0 to 1, where 1 is the strongest preference"
_A_WEIGHT = "has no effect without enforcement preferred: leave it out"


@KV_TRANSFER.rule(_NO_WEIGHT, _A_WEIGHT)
def preference_has_a_weight(graph: GraphView, _facts: Facts) -> Violations:
    """Only the enforcement preferred has a weight, and requires it."""
    policy = policy_of(graph)
    if policy is None:
        return
    if policy.get("enforcement") == PREFERRED and policy.get("preferredWeight") is None:
        yield (*AT, "preferredWeight"), _NO_WEIGHT
    if policy.get("enforcement") != PREFERRED and policy.get("preferredWeight") is not None:
        yield (*AT, "preferredWeight"), _A_WEIGHT


@KV_TRANSFER.rule(
    "cannot be combined with spec.experimental.kvTransferPolicy: a restored engine does not know its own {domain}; "
    "leave one of the two out",
    added=True,
)
def workers_of_a_policy_load_their_model(graph: GraphView, _facts: Facts) -> Violations:
    """A worker reads its own domain when it starts; a worker that is restored from a checkpoint started on another node."""
    policy = policy_of(graph)
    for component in graph.components if policy is not None else ():
        if component.checkpoint is not None and component.is_worker and policy is not None:
            yield broken(component.checkpoint, domain=text(policy.get("domain")) or "domain")


@CHANGES_OF_KV_TRANSFER.rule("cannot be added, removed or changed later: recreate the DynamoGraphDeployment")
def policies_stay(graph: GraphView, old: GraphView, _facts: Facts) -> Violations:
    """The policy of a graph cannot be changed. A stored policy with a ClusterTopology, of another platform, may add its label."""
    before, now = _effective(old), _effective(graph)
    if before is not None and now is not None and not before[0]:
        before = (now[0], *before[1:])
    if now != before:
        yield broken(AT)


@ABOUT_KV_TRANSFER.rule(
    "the platform may not read nodes (rbac.parts.nodes of the chart): workers start only if another program sets "
    "this label on their pods",
    added=True,
)
def labels_of_nodes_can_be_read(graph: GraphView, facts: Facts) -> Violations:
    """If the platform may not read nodes, it copies no labels from them; with this chart value it also discovers no GPUs."""
    if policy_of(graph) is not None and not facts.gpu_discovery:
        yield broken((*AT, "labelKey"))


def policy_of(graph: GraphView) -> dict[str, Any] | None:
    """The policy of a graph, valid or not; None if absent."""
    policy = mapping(graph.spec.get("experimental")).get("kvTransferPolicy")
    return policy if isinstance(policy, dict) else None


def _effective(graph: GraphView) -> tuple[Any, ...] | None:
    policy = policy_of(graph)
    if policy is None:
        return None
    return (
        text(policy.get("labelKey")),
        policy.get("domain"),
        policy.get("enforcement") or "required",
        policy.get("preferredWeight"),
    )
