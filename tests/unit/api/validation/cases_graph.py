# ruff: noqa: E501 - messages stand here whole
"""Cases about graphs as a whole: components, names, labels, restarts, claims, topology."""

from dataclasses import replace
from typing import Any

from .building import GROVE, PLAIN, Case, alone, alpha, beta, both, component, components, service, services


def policy(**fields: Any) -> dict[str, Any]:
    """Experimental features of a graph."""
    return {"experimental": {"kvTransferPolicy": {"domain": "zone", **fields}}}


CASES = [
    *both(
        "a policy where nodes are not read",
        services({"a": service()}, **policy(labelKey="zone")),
        components(component("a"), **policy(labelKey="zone")),
        "warning: spec.experimental.kvTransferPolicy.labelKey: the platform may not read nodes (rbac.parts.nodes of the chart): workers start only if another program sets this label on their pods",
        facts=replace(PLAIN, gpu_discovery=False),
    ),
    Case(
        "beta: a policy on a platform of some namespaces, which reads nodes, too",
        components(component("a"), **policy(labelKey="zone")),
        facts=replace(PLAIN, cluster_wide=False),
    ),
    Case(
        "beta: a whole policy",
        components(component("a"), **policy(labelKey="zone", enforcement="preferred", preferredWeight=0)),
    ),
    Case(
        "beta: more start together than there are",
        beta("a: {replicas: 3, minAvailable: 4}", "c: {minAvailable: 2, scalingAdapter: {}}"),
        "error: spec.components[0].minAvailable: 4 is more than replicas (3), and Grove would wait for the missing ones: write at most 3",
        facts=GROVE,
    ),
    Case(
        "alpha: replicas that start together, without Grove",
        services({"a": service(replicas=1, minAvailable=2)}),
        "warning: spec.services.a.minAvailable: has no effect: only Grove starts replicas together, and Grove does not run this graph",
    ),
    *(
        Case(
            f"beta: what only Grove does, with Grove turned off where it is {grove}",
            beta(
                "a: {replicas: 2, minAvailable: 2}",
                "b: {gpus: '1', experimental: {gpuMemoryService: {mode: InterPod}}}",
                metadata={"annotations": {"nvidia.com/enable-grove": "false"}},
                backendFramework="vllm",
            ),
            "error: spec.components[1].experimental.gpuMemoryService.mode: 'InterPod' needs Grove, which the annotation nvidia.com/enable-grove disables for this graph: remove the annotation",
            "warning: spec.components[0].minAvailable: has no effect: only Grove starts replicas together, and Grove does not run this graph",
            facts=replace(GROVE, grove=grove),
        )
        for grove in (True, None)
    ),
    Case(
        "beta: replicas that start together, where it is not known what runs them",
        components(component("a", replicas=1, minAvailable=2)),
        facts=replace(PLAIN, grove=None),
    ),
    *both(
        "replicas of a component deployment that start together",
        alone("v1alpha1", **service(replicas=1, minAvailable=2)),
        alone("v1beta1", **component("a", replicas=1, minAvailable=2)),
        "warning: spec.minAvailable: has no effect: only Grove starts replicas together, and Grove runs only graphs; write a DynamoGraphDeployment",
        facts=GROVE,
    ),
    Case(
        "alpha: order of a restart",
        alpha(
            "Frontend: {kind: frontend}",
            "Decode: {}",
            restart={"id": "1", "strategy": {"order": ["Frontend", "Frontend", "decode"]}},
        ),
        "error: spec.restart.strategy.order[1]: 'Frontend' is already at [0]: name each service once",
        "error: spec.restart.strategy.order[2]: 'decode' is not a service of this graph; did you mean Decode?",
        "error: spec.restart.strategy.order: lacks Decode: name every service once, or leave order out for alphabetical order",
    ),
    Case(
        "beta: order with every component once",
        components(component("a"), component("b"), restart={"id": "1", "strategy": {"order": ["b", "a"]}}),
    ),
    *both(
        "name of a graph",
        services({"a": service()}, metadata={"name": "3.d", "namespace": "n" * 63}),
        components(component("a"), metadata={"name": "3.d", "namespace": "n" * 63}),
        "error: metadata.name: begins with '3', but the names of Services begin with this name, so it must begin with a letter",
        "error: metadata.name: results in the Dynamo namespace 'nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn-3-d' of 67 characters, but a label value has at most 63: shorten it by 4",
    ),
    Case(
        "alpha: names under Grove",
        services(
            {"S" * 38: service(), "m" * 25: service(multinode={"nodeCount": 2})},
            backendFramework="sglang",
            metadata={"name": "graph-of-some-length"},
        ),
        "error: spec.services.SSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSSS: results in names of 46 characters in total (8 of the graph + ssssssssssssssssssssssssssssssssssssss), but Grove allows 45: shorten it by 1",
        "error: spec.services.mmmmmmmmmmmmmmmmmmmmmmmmm: results in names of 62 characters in total (8 of the graph + mmmmmmmmmmmmmmmmmmmmmmmmm + mmmmmmmmmmmmmmmmmmmmmmmmm-ldr), but Grove allows 45: shorten it by 9",
        facts=GROVE,
    ),
    Case(
        "beta: names under Grove",
        beta(
            """
            ssssssssssssssssssss: {}
            ggggggggggggggggg:
              gpus: '1'
              multinode: {nodeCount: 12}
              experimental: {gpuMemoryService: {mode: InterPod}}
            """,
            backendFramework="vllm",
            metadata={"name": "graph-of-some-length"},
        ),
        "error: spec.components[1].name: results in names of 49 characters in total (8 of the graph + ggggggggggggggggg + ggggggggggggggggg-wkr-11), but Grove allows 45: shorten it by 2",
        facts=GROVE,
    ),
    Case(
        "alpha: labels and annotations that no object can have",
        alpha(
            "a: {extraPodMetadata: {labels: {team: a/b}, annotations: {my note: ''}}}",
            labels={"team": "blue team", "ok": ""},
            annotations={"note!": "x"},
        ),
        "error: spec.labels.team: 'blue team' is not a valid label value: at most 63 letters, digits, '-', '_' and '.', a letter or digit first and last",
        "error: spec.annotations[\"note!\"]: is not a valid key: at most 63 letters, digits, '-', '_' and '.', a letter or digit first and last, optionally after a DNS name and a '/'",
        "error: spec.services.a.extraPodMetadata.labels.team: 'a/b' is not a valid label value: at most 63 letters, digits, '-', '_' and '.', a letter or digit first and last",
        "error: spec.services.a.extraPodMetadata.annotations[\"my note\"]: is not a valid key: at most 63 letters, digits, '-', '_' and '.', a letter or digit first and last, optionally after a DNS name and a '/'",
    ),
    Case(
        "alpha: more pods unavailable than there are",
        alpha(
            "a: {extraPodMetadata: {annotations: {nvidia.com/deployment-rolling-update-max-unavailable: 101%}}}",
            annotations={
                "nvidia.com/deployment-rolling-update-max-surge": "200%",
                "nvidia.com/deployment-rolling-update-max-unavailable": "100%",
            },
        ),
        "error: spec.services.a.extraPodMetadata.annotations[\"nvidia.com/deployment-rolling-update-max-unavailable\"]: '101%' is more than all pods: write at most 100%",
    ),
    Case(
        "beta: domains without a topology",
        components(*(component(name, topologyConstraint={"packDomain": "rack"}) for name in ("a", "b"))),
        "error: spec.topologyConstraint: required, because a, b have a topologyConstraint: set clusterTopologyName to the ClusterTopology with the domains",
        facts=GROVE,
    ),
    Case(
        "beta: a domain for one component alone",
        beta("a: {topologyConstraint: {packDomain: rack}}", "b: {}", topologyConstraint={"clusterTopologyName": "dc"}),
        facts=GROVE,
    ),
    Case(
        "beta: no such topology, and none at all",
        components(component("a"), topologyConstraint={"clusterTopologyName": "dc", "packDomain": "rack"}),
        "error: spec.topologyConstraint.clusterTopologyName: 'dc' is not a ClusterTopology of this cluster; there are: none",
        facts=replace(GROVE, topologies={}),
    ),
    Case(
        "beta: domains",
        beta(
            "a: {topologyConstraint: {packDomain: host}}",
            "b: {topologyConstraint: {packDomain: rack}}",
            "c: {}",
            topologyConstraint={"clusterTopologyName": "dc", "packDomain": "host"},
        ),
        "error: spec.components[1].topologyConstraint.packDomain: 'rack' is wider than 'host' of spec.topologyConstraint; one of host",
        facts=GROVE,
    ),
    Case(
        "beta: topologies that no one knows",
        components(component("a"), topologyConstraint={"clusterTopologyName": "x", "packDomain": "row"}),
        facts=replace(GROVE, topologies=None),
    ),
    *both(
        "several nodes, and nothing that runs them",
        services({"a": service(multinode={"nodeCount": 2})}, backendFramework="sglang"),
        components(component("a", multinode={"nodeCount": 2}), backendFramework="sglang"),
        "warning: {at}.multinode: replicas of several nodes cannot run here, so the whole graph fails: install LeaderWorkerSet or Grove, or leave multinode out",
        at=("spec.services.a", "spec.components[0]"),
        facts=replace(PLAIN, leader_worker_sets=False),
    ),
    *(
        Case(
            f"several nodes, and {name} runs them",
            components(component("a", multinode={"nodeCount": 2}), backendFramework="sglang"),
            facts=replace(facts, leader_worker_sets=lws),
        )
        for name, facts, lws in (
            ("LeaderWorkerSet", PLAIN, True),
            ("Grove", GROVE, False),
            ("no one knows what", PLAIN, None),
        )
    ),
    *both(
        "topology without Grove",
        services({"a": service()}, topologyConstraint={"topologyProfile": "x", "packDomain": "rack"}),
        components(component("a"), topologyConstraint={"clusterTopologyName": "x", "packDomain": "rack"}),
        "warning: spec.topologyConstraint: has no effect: only Grove packs pods by topology, and Grove does not run this graph",
    ),
]
