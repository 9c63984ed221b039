# ruff: noqa: E501 - messages stand here whole
"""Cases about topology constraints in Grove's fields: their types, their fields, and immutability."""

from typing import Any

from .building import GROVE, PLAIN, Case, component, components, service, services


def override(value: Any, **fields: Any) -> dict[str, Any]:
    """A field of a graph, a component or a role."""
    return {"providerOverride": {"apiVersion": "grove.io/v1alpha1", "value": value, **fields}}


def packed(domain: str) -> dict[str, Any]:
    """A constraint of a component or a role."""
    return {"topologyConstraint": {"pack": {"required": domain}}}


def whole(constraint: Any) -> dict[str, Any]:
    """A constraint of a graph."""
    return {"spec": {"template": constraint}}


RACK = packed("rack")
CLIQUE: dict[str, Any] = {"spec": {"minAvailable": 2}}
GROUP: dict[str, Any] = {"minAvailable": 2}
STARTS = "has no effect: only Grove starts replicas together, and Grove does not run this graph"
CHANGED = "cannot be added, removed or changed while Grove runs the graph: recreate the DynamoGraphDeployment"
NO_EFFECT = "has no effect: only Grove packs pods by topology, and Grove does not run this graph"
NOT_HERE = "cannot be set here, because the platform sets it:"
DOMAINS = "required: an object with the domains that pods share, for example pack with required: rack"


def several(name: str, **fields: Any) -> dict[str, Any]:
    """A v1beta1 component on two nodes."""
    main = {"name": "main", "image": "engine:1", "command": ["python3", "-m", "dynamo.vllm"]}
    pod = {"containers": [{**main, "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}
    return {**component(name, multinode={}, **fields), "podTemplate": {"spec": pod}}


def spread(roles: Any) -> dict[str, Any]:
    """A v1alpha1 service on two nodes."""
    main = {"image": "engine:1", "command": ["python3", "-m", "dynamo.vllm"]}
    return service(gpus="1", multinode={}, roles=roles, extraPodSpec={"mainContainer": main})


ROLES: list[dict[str, Any]] = [{"name": "leader", **override(RACK)}, {"name": "worker"}]

CASES = [
    Case(
        "beta: overrides of a graph, its components and a role",
        components(
            component("a", **override({"topologyConstraint": {"later": {"x": None}}})),
            several("b", roles=ROLES, **override(RACK, target="PodCliqueScalingGroupConfig")),
            component(
                "c",
                **override(RACK, target="PodCliqueScalingGroupConfig"),
                experimental={"grove": {"forceScalingGroup": True}},
            ),
            **override(
                whole({"topologyConstraint": {"topologyName": "dc", "packDomain": "zone"}}), target="PodCliqueSet"
            ),
        ),
        facts=GROVE,
    ),
    Case(
        "alpha: a service that v1beta1 makes a scaling group",
        services({"a": service(**override(RACK, target="PodCliqueScalingGroupConfig"))}),
        facts=GROVE,
    ),
    Case(
        "beta: overrides of more than constraints",
        components(
            component(
                "a", replicas=3, **override({"minAvailable": 2, "spec": {"minAvailable": 1, "replicas": 2}, **RACK})
            ),
            component("b", **override({"topologyConstraint": {"packDomain": 7, "pack": {"preferred": 7, "later": 7}}})),
            component("c", **override({"topologyConstraint": {"pack": []}})),
            **override({"kind": "x", "spec": {"replicas": 2, "template": []}}),
        ),
        "error: spec.providerOverride.value.kind: cannot be set here, because the platform sets it: only value.spec.template.topologyConstraint can be set",
        "error: spec.providerOverride.value.spec.replicas: cannot be set here, because the platform sets it: only value.spec.template.topologyConstraint can be set",
        f"error: spec.providerOverride.value.spec.template.topologyConstraint: {DOMAINS}",
        f"error: spec.components[0].providerOverride.value.minAvailable: {NOT_HERE} only value.topologyConstraint and value.spec.minAvailable can be set",
        f"error: spec.components[0].providerOverride.value.spec.replicas: {NOT_HERE} only value.topologyConstraint and value.spec.minAvailable can be set",
        "error: spec.components[1].providerOverride.value.topologyConstraint.packDomain: must be a string",
        "error: spec.components[1].providerOverride.value.topologyConstraint.pack.preferred: must be a string",
        "error: spec.components[2].providerOverride.value.topologyConstraint.pack: must be an object with required, preferred or both",
        facts=GROVE,
    ),
    Case(
        "beta: replicas that start together, of a clique and of a group, next to a constraint of the graph",
        components(
            component("a", replicas=3, **override({"spec": {"minAvailable": 3}})),
            several("b", replicas=3, **override({"minAvailable": 2})),
            component("c", minAvailable=1),
            topologyConstraint={"clusterTopologyName": "dc", "packDomain": "zone"},
        ),
        facts=GROVE,
    ),
    Case(
        "alpha: replicas that start together, in both ways, as v1beta1 may make it either",
        services({"a": service(replicas=3, **override(CLIQUE)), "b": service(replicas=3, **override(GROUP))}),
        facts=GROVE,
    ),
    Case(
        "beta: numbers of replicas that are not, or that are written twice",
        components(
            component("a", replicas=3, **override({"spec": {"minAvailable": "2"}})),
            several("b", replicas=3, **override({"minAvailable": 0})),
            component("c", minAvailable=2, replicas=3, **override(CLIQUE)),
            component("d", **override(CLIQUE)),
            component("e", replicas=0, **override({"spec": {"minAvailable": 2**31}})),
        ),
        "error: spec.components[0].providerOverride.value.spec.minAvailable: '2' is not a number of replicas: write a whole number, 1 or more",
        "error: spec.components[1].providerOverride.value.minAvailable: 0 is not a number of replicas: write a whole number, 1 or more",
        "error: spec.components[2].providerOverride.value.spec.minAvailable: minAvailable of the component sets the same number: leave one of the two out",
        "error: spec.components[4].providerOverride.value.spec.minAvailable: 2147483648 is not a number of replicas: write a whole number, 1 or more",
        "error: spec.components[3].providerOverride.value.spec.minAvailable: 2 is more than replicas (1), and Grove would wait for the missing ones: write at most 1",
        facts=GROVE,
    ),
    Case(
        "beta: a role says how many replicas start together",
        components(several("a", roles=[{"name": "leader", **override({**CLIQUE, **RACK})}, {"name": "worker"}])),
        f"error: spec.components[0].roles[0].providerOverride.value.spec: {NOT_HERE} only value.topologyConstraint can be set; write minAvailable in the override of the component, for all of its roles",
        facts=GROVE,
    ),
    Case(
        "beta: replicas that start together move into an override, and change",
        components(
            component("a", replicas=3, **override(CLIQUE)),
            component("b", replicas=3, **override(CLIQUE)),
            component("c", replicas=3),
        ),
        "error: spec.components[1].providerOverride.value.spec.minAvailable: cannot be changed from 3 to 2, because Grove cannot change it: create a DynamoGraphDeployment of another name",
        "error: spec.components[2].minAvailable: cannot be changed from 2 to 1, because Grove cannot change it: create a DynamoGraphDeployment of another name",
        old=components(
            component("a", replicas=3, minAvailable=2),
            component("b", replicas=3, minAvailable=3),
            component("c", replicas=3, **override(CLIQUE)),
        ),
        facts=GROVE,
    ),
    Case(
        "beta: replicas that start together where Grove does not run the graph",
        components(
            component("a", replicas=3, **override(CLIQUE)), component("b", replicas=3, **override({**CLIQUE, **RACK}))
        ),
        f"warning: spec.components[1].providerOverride: {NO_EFFECT}",
        f"warning: spec.components[0].providerOverride.value.spec.minAvailable: {STARTS}",
        f"warning: spec.components[1].providerOverride.value.spec.minAvailable: {STARTS}",
        facts=PLAIN,
    ),
    Case(
        "beta: overrides are added, changed and removed",
        components(
            component("b", **override(packed("zone"))),
            component("a", **override(RACK)),
            component("c"),
            component("d", **override(RACK)),
            **override(whole(RACK)),
        ),
        f"error: spec.components[0].providerOverride: {CHANGED}",
        f"error: spec.components[2].providerOverride: {CHANGED}",
        f"error: spec.providerOverride: {CHANGED}",
        f"error: spec.components[1].providerOverride: {CHANGED}",
        old=components(
            component("a"),
            component("b", **override(RACK)),
            component("c", **override(RACK)),
            component("d", **override({"topologyConstraint": {"packDomain": "rack"}})),
        ),
        facts=GROVE,
    ),
    Case(
        "alpha: an override of a role is changed",
        services({"a": spread(ROLES)}),
        f"error: spec.services.a.roles[0].providerOverride: {CHANGED}",
        old=services({"a": spread([{"name": "leader", **override(packed("zone"))}, {"name": "worker"}])}),
        facts=GROVE,
    ),
    Case(
        "beta: an override changes where Grove does not run the graph",
        components(component("a", **override(RACK))),
        f"warning: spec.components[0].providerOverride: {NO_EFFECT}",
        old=components(component("a", **override(packed("zone")))),
        facts=PLAIN,
    ),
]
