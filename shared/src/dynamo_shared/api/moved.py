"""For manifests that mix versions: what to write instead of a field that only another version, or an early release, has."""

from collections.abc import Mapping

from dynamo_shared.api.containers import CONTAINER_FIELDS, POD_FIELDS
from dynamo_shared.api.crds.kinds import ADAPTER, COMPONENT, GRAPH, REQUEST
from dynamo_shared.api.resources import Resource

_ALPHA_GRAPHS = {
    "components": "v1alpha1 has a map, services, whose keys are the names",
    "name": "in v1alpha1 it is the key in services; a DynamoComponentDeployment calls it serviceName",
    "type": "v1alpha1 calls it componentType; prefill and decode are worker with a subComponentType",
    "env": "v1alpha1 calls it envs",
    "podTemplate": "v1alpha1 has it in extraPodSpec and extraPodMetadata, with mainContainer for the container main",
    "sharedMemorySize": "v1alpha1 has it in sharedMemory.size",
    "compilationCache": "v1alpha1 has it in volumeMounts, with useAsCompilationCache: true",
    "experimental": "v1alpha1 has its fields on the service itself, each with enabled: true",
    "clusterTopologyName": "v1alpha1 calls it topologyProfile",
    # From Dynamo 0.3, and from 0.3 to 0.5.
    "nvidia.com/gpu": "v1alpha1 calls it gpu",
    "pvc": "v1alpha1 has name and create in pvcs of the graph, and name and mountPoint in volumeMounts of the service",
    "pvcs": "v1alpha1 has it on the graph; a service has volumeMounts",
    **dict.fromkeys(CONTAINER_FIELDS, "v1alpha1 has it in extraPodSpec.mainContainer"),
    **dict.fromkeys(POD_FIELDS, "v1alpha1 has it in extraPodSpec"),
}

_ALPHA_REQUESTS = {
    "sla": "v1alpha1 has it in profilingConfig.config",
    "workload": "v1alpha1 has isl and osl in profilingConfig.config.sla",
    "hardware": "v1alpha1 has it in profilingConfig.config",
    "modelCache": "v1alpha1 has it in profilingConfig.config.deployment",
    "features": "v1alpha1 has the planner in profilingConfig.config, and useMocker",
    "overrides": "v1alpha1 has deploymentOverrides, and parts of the job in profilingConfig",
    "image": "v1alpha1 calls it profilingConfig.profilerImage",
    "profilerImage": "v1alpha1 has it in profilingConfig",
    "searchStrategy": "v1alpha1 has none",
}

_ALPHA_ADAPTERS = {"componentName": "v1alpha1 calls it serviceName"}

_BETA_GRAPHS = {
    "services": "v1beta1 has a list, components, each item with its name",
    "serviceName": "v1beta1 calls it name",
    "componentType": "v1beta1 calls it type",
    "subComponentType": "v1beta1 has it in type: prefill or decode",
    "envs": "v1beta1 calls it env, on the graph; a component has it in podTemplate.spec.containers",
    "pvcs": "v1beta1 has no such field: create the claim, and name it in podTemplate.spec.volumes",
    "extraPodSpec": "v1beta1 has it in podTemplate.spec, with the container main for mainContainer",
    "extraPodMetadata": "v1beta1 has it in podTemplate.metadata",
    "mainContainer": "v1beta1 has it in podTemplate.spec.containers, under the name main",
    "labels": "v1beta1 has it in podTemplate.metadata",
    "annotations": "v1beta1 has it in podTemplate.metadata",
    "resources": "v1beta1 has it in podTemplate.spec.containers, on the container main",
    "livenessProbe": "v1beta1 has it in podTemplate.spec.containers, on the container main",
    "readinessProbe": "v1beta1 has it in podTemplate.spec.containers, on the container main",
    **dict.fromkeys(CONTAINER_FIELDS, "v1beta1 has it in podTemplate.spec.containers, on the container main"),
    **dict.fromkeys(POD_FIELDS, "v1beta1 has it in podTemplate.spec"),
    "volumeMounts": "v1beta1 has it in podTemplate.spec.containers, or in compilationCache",
    "envFromSecret": "v1beta1 has it in podTemplate.spec.containers, as envFrom",
    "sharedMemory": "v1beta1 calls it sharedMemorySize, a size, or 0 for none",
    "gpuMemoryService": "v1beta1 has it in experimental",
    "failover": "v1beta1 has it in experimental",
    "checkpoint": "v1beta1 has it in experimental",
    "enabled": "v1beta1 has no switch: write the object, even if empty, or leave it out",
    "topologyProfile": "v1beta1 calls it clusterTopologyName",
    "autoscaling": "gone: write scalingAdapter {}, and ask for an autoscaler in the annotation nvidia.com/dynamo-autoscaling",
    "ingress": "gone: create an Ingress, or a route of a Gateway, to the Service of the component",
    "dynamoNamespace": "gone: it follows from the namespace and the name of the graph",
}

_BETA_REQUESTS = {
    "profilingConfig": "v1beta1 has sla, workload, hardware, modelCache and image instead, and overrides.profilingJob",
    "profilerImage": "v1beta1 calls it image",
    "deploymentOverrides": "v1beta1 has overrides.dgd",
    "enableGpuDiscovery": "gone: what hardware does not say is discovered",
    "useMocker": "v1beta1 has features.mocker.enabled",
}

_BETA_ADAPTERS = {"serviceName": "v1beta1 calls it componentName"}

_MOVED: dict[tuple[str, str], Mapping[str, str]] = {
    (GRAPH.kind, "v1alpha1"): _ALPHA_GRAPHS,
    (GRAPH.kind, "v1beta1"): _BETA_GRAPHS,
    (COMPONENT.kind, "v1alpha1"): _ALPHA_GRAPHS,
    (COMPONENT.kind, "v1beta1"): _BETA_GRAPHS,
    (ADAPTER.kind, "v1alpha1"): _ALPHA_ADAPTERS,
    (ADAPTER.kind, "v1beta1"): _BETA_ADAPTERS,
    (REQUEST.kind, "v1alpha1"): _ALPHA_REQUESTS,
    (REQUEST.kind, "v1beta1"): _BETA_REQUESTS,
}


def moved(resource: Resource) -> Mapping[str, str]:
    """For fields that a version of a kind does not have, but another one has: what to write instead, by field name."""
    return _MOVED.get((resource.kind, resource.version), {})
