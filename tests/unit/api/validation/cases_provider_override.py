# ruff: noqa: E501 - messages stand here whole
"""Cases about constraints in the words of Grove: their types, what they may have, when they stay."""

from typing import Any

from .building import GROVE, PLAIN, Case, alone, component, components, service, services


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
CHANGED = "cannot be added, removed or changed while Grove runs the graph: recreate the DynamoGraphDeployment"
NO_EFFECT = "has no effect: only Grove packs pods by topology, and it does not run this graph"
DOMAINS = "required: an object with the domains that pods share, such as pack, with required: rack"


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
            component("a", **override({"minAvailable": 2, **RACK})),
            component("b", **override({"topologyConstraint": {"packDomain": 7, "pack": {"preferred": 7, "later": 7}}})),
            component("c", **override({"topologyConstraint": {"pack": []}})),
            **override({"kind": "x", "spec": {"replicas": 2, "template": []}}),
        ),
        "error: spec.providerOverride.value.kind: cannot be written here, as the platform writes it: only value.spec.template.topologyConstraint can",
        "error: spec.providerOverride.value.spec.replicas: cannot be written here, as the platform writes it: only value.spec.template.topologyConstraint can",
        f"error: spec.providerOverride.value.spec.template.topologyConstraint: {DOMAINS}",
        "error: spec.components[0].providerOverride.value.minAvailable: cannot be written here, as the platform writes it: only value.topologyConstraint can; write minAvailable as a field of the component",
        "error: spec.components[1].providerOverride.value.topologyConstraint.packDomain: must be a text",
        "error: spec.components[1].providerOverride.value.topologyConstraint.pack.preferred: must be a text",
        "error: spec.components[2].providerOverride.value.topologyConstraint.pack: must be an object with required, preferred or both",
        facts=GROVE,
    ),
    *(
        Case(
            f"{version}: an override of a component deployment",
            alone(version, **made),
            f"error: spec.providerOverride: only {words} of a DynamoGraphDeployment have it: write one, or leave this out",
            facts=GROVE,
        )
        for version, made, words in (
            ("v1alpha1", service(**override(RACK)), "services"),
            ("v1beta1", component("a", **override(RACK)), "components"),
        )
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
