"""The v1beta1 equivalents of v1alpha1 fields, for messages about manifests that mix both versions."""

from dynamo_shared.api.containers import CONTAINER_FIELDS, POD_FIELDS

MOVED = {
    "services": "v1beta1 has a list, components, each item with its name",
    "serviceName": "v1beta1 calls it name",
    "componentType": "v1beta1 calls it type",
    "subComponentType": "v1beta1 has it in type: prefill or decode",
    "envs": "v1beta1 calls it env, on the graph; a component has it in podTemplate.spec.containers",
    "pvcs": "v1beta1 has no such field: create the claim, and name it in podTemplate.spec.volumes",
    "extraPodSpec": "v1beta1 has it in podTemplate.spec, with the container main for mainContainer",
    "extraPodMetadata": "v1beta1 has it in podTemplate.metadata",
    "mainContainer": "v1beta1 has it in podTemplate.spec.containers, under the name main",
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
"""What to write instead of an old name, in graphs and components."""

MOVED_IN_REQUESTS = {
    "profilingConfig": "v1beta1 has sla, workload, hardware, modelCache and image instead, and overrides.profilingJob",
    "profilerImage": "v1beta1 calls it image",
    "deploymentOverrides": "v1beta1 has overrides.dgd",
    "enableGpuDiscovery": "gone: what hardware does not say is discovered",
    "useMocker": "v1beta1 has features.mocker.enabled",
}
"""What to write instead of an old name, in requests."""

MOVED_IN_ADAPTERS = {"serviceName": "v1beta1 calls it componentName"}
"""What to write instead of an old name, in scaling adapters."""
