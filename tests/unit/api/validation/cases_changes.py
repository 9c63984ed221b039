# ruff: noqa: E501 - messages stand here whole
"""Cases about updates: immutable fields, rights to scale, and delayed restarts."""

from dataclasses import replace
from typing import Any

from .building import GROVE, PLAIN, Case, beta, both, component, components, manifest, service, services


def _rolling(graph: dict[str, Any], phase: str) -> dict[str, Any]:
    return {**graph, "status": {"rollingUpdate": {"phase": phase}}}


ADAPTED_ALPHA = services({"Decode": service(replicas=2, scalingAdapter={"enabled": True})})
SCALED_ALPHA = services({"Decode": service(replicas=5, scalingAdapter={"enabled": True})})
ADAPTED_BETA = components(component("Decode", replicas=2, scalingAdapter={}))
SCALED_BETA = components(component("Decode", replicas=5, scalingAdapter={}))


def of_graph(spec: dict[str, Any], version: str = "v1beta1", **metadata: Any) -> dict[str, Any]:
    """A component deployment that the graph llama controls."""
    owner = {"apiVersion": "nvidia.com/v1beta1", "kind": "DynamoGraphDeployment", "name": "llama", "controller": True}
    obj = manifest("DynamoComponentDeployment", version, spec)
    return {**obj, "metadata": {**obj["metadata"], **metadata, "ownerReferences": [{**owner, "uid": "1"}]}}


ZONE = {"labelKey": "topology.kubernetes.io/zone", "domain": "zone"}

CASES = [
    Case(
        "beta: a policy for KV caches is added",
        components(component("a"), experimental={"kvTransferPolicy": ZONE}),
        "error: spec.experimental.kvTransferPolicy: cannot be added, removed or changed later: recreate the DynamoGraphDeployment",
        old=components(component("a")),
    ),
    Case(
        "alpha: a policy for KV caches whose default is written out",
        services({"a": service()}, experimental={"kvTransferPolicy": {**ZONE, "enforcement": "required"}}),
        old=services({"a": service()}, experimental={"kvTransferPolicy": ZONE}),
    ),
    Case(
        "beta: a policy for KV caches of another platform names the label in place of the topology",
        components(component("a"), experimental={"kvTransferPolicy": ZONE}),
        old=beta("a: {}", experimental={"kvTransferPolicy": {"domain": ZONE["domain"], "clusterTopologyName": "t"}}),
    ),
    Case(
        "beta: another number that starts together, without Grove",
        components(component("a", replicas=3)),
        old=components(component("a", replicas=3, minAvailable=3)),
    ),
    Case(
        "alpha: another backend",
        services({"a": service()}, backendFramework="sglang"),
        "error: spec.backendFramework: cannot be changed from 'vllm' to 'sglang': create a DynamoGraphDeployment of another name",
        "warning: spec.backendFramework: the engine cannot change once pods run: deploy the other engine next to this one, and move the traffic",
        old=services({"a": service()}, backendFramework="vllm"),
    ),
    Case(
        "alpha: another backend of a component alone",
        manifest("DynamoComponentDeployment", "v1alpha1", service()),
        "error: spec.backendFramework: cannot be changed from 'vllm' to unset: create a DynamoComponentDeployment of another name",
        "warning: spec.backendFramework: the engine cannot change once pods run: deploy the other engine next to this one, and move the traffic",
        old=manifest("DynamoComponentDeployment", "v1alpha1", service(backendFramework="vllm")),
    ),
    *both(
        "a user changes a component deployment that a graph controls",
        of_graph(service(serviceName="a", replicas=3), "v1alpha1"),
        of_graph(component("a", replicas=3)),
        "warning: spec: DynamoGraphDeployment 'llama' controls this component deployment and reverts the fields that it sets; other fields take effect, but the graph does not show them: change 'a' there",
        old=(of_graph(service(serviceName="a", replicas=2), "v1alpha1"), of_graph(component("a", replicas=2))),
        facts=replace(PLAIN, user="jane"),
    ),
    Case(
        "beta: the platform changes a component deployment that a graph controls",
        of_graph(component("a", replicas=3)),
        old=of_graph(component("a", replicas=2)),
        facts=replace(PLAIN, user="jane", operators=frozenset({"jane"})),
    ),
    Case(
        "beta: a user labels a component deployment that a graph controls",
        of_graph(component("a", scalingAdapter={}), labels={"team": "x"}),
        old=of_graph(component("a", scalingAdapter={})),
        facts=replace(PLAIN, user="jane"),
    ),
    Case(
        "beta: more nodes",
        components(component("a", multinode={"nodeCount": 4}), backendFramework="sglang"),
        old=components(component("a", multinode={"nodeCount": 2}), backendFramework="sglang"),
    ),
    Case(
        "alpha: more nodes on Grove",
        services({"a": service(multinode={"nodeCount": 3})}, backendFramework="sglang"),
        "warning: spec.services.a.multinode.nodeCount: Grove cannot change the number of nodes of a graph that it runs: create a DynamoGraphDeployment of another name, or disable Grove for this graph",
        old=services({"a": service(multinode={"nodeCount": 2})}, backendFramework="sglang"),
        facts=GROVE,
    ),
    Case(
        "beta: fewer nodes on Grove",
        components(component("a", multinode={}), backendFramework="sglang"),
        "warning: spec.components[0].multinode.nodeCount: Grove cannot change the number of nodes of a graph that it runs: create a DynamoGraphDeployment of another name, or disable Grove for this graph",
        old=components(component("a", multinode={"nodeCount": 4}), backendFramework="sglang"),
        facts=GROVE,
    ),
    Case(
        "beta: a topology that has gone meanwhile",
        components(component("a"), topologyConstraint={"clusterTopologyName": "dc", "packDomain": "rack"}),
        old=components(component("a"), topologyConstraint={"clusterTopologyName": "dc", "packDomain": "rack"}),
        facts=replace(GROVE, topologies={}),
    ),
    Case(
        "beta: replicas of an adapter by the platform",
        SCALED_BETA,
        old=ADAPTED_BETA,
        facts=replace(
            PLAIN,
            user="system:serviceaccount:dynamo:scaler",
            operators=frozenset({"system:serviceaccount:dynamo:scaler"}),
        ),
    ),
    Case(
        "alpha: replicas of an adapter by a planner of any namespace",
        SCALED_ALPHA,
        old=ADAPTED_ALPHA,
        facts=replace(PLAIN, user="system:serviceaccount:team-7:planner-serviceaccount"),
    ),
    Case(
        "beta: replicas of an adapter by an account with the planner's name in its own",
        SCALED_BETA,
        "error: spec.components[0].replicas: cannot be changed from 2 to 5, because scalingAdapter lets an adapter set it: run kubectl scale dgdsa graph-decode --replicas=5, or leave replicas out",
        old=ADAPTED_BETA,
        facts=replace(PLAIN, user="system:serviceaccount:team-7:planner-serviceaccount:x"),
    ),
    Case("beta: replicas left to an adapter", components(component("Decode", scalingAdapter={})), old=ADAPTED_BETA),
    Case(
        "beta: the replicas that there are, with an adapter that is new",
        components(component("Decode", replicas=2, scalingAdapter={})),
        old=components(component("Decode", replicas=2)),
    ),
    Case(
        "beta: replicas that the adapter has, by any user",
        SCALED_BETA,
        old=ADAPTED_BETA,
        facts=replace(PLAIN, adapter_replicas={"Decode": 5}),
    ),
    Case(
        "beta: a restart after a rolling update",
        components(component("a"), restart={"id": "2"}),
        old=_rolling(components(component("a"), restart={"id": "1"}), "Completed"),
    ),
    Case(
        "beta: an object that is being deleted",
        {**components(), "metadata": {"name": "3", "deletionTimestamp": "2026-01-01T00:00:00Z"}},
        old=components(component("a"), backendFramework="vllm"),
    ),
]
