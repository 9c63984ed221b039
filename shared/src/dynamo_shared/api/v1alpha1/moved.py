"""The v1alpha1 equivalents of fields of v1beta1 and early releases, for messages about manifests that mix versions."""

from dynamo_shared.api.containers import CONTAINER_FIELDS, POD_FIELDS

MOVED = {
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
"""What to write instead of another name, in graphs and components."""

MOVED_IN_REQUESTS = {
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
"""What to write instead of a newer name, in requests."""

MOVED_IN_ADAPTERS = {"componentName": "v1alpha1 calls it serviceName"}
"""What to write instead of a newer name, in scaling adapters."""
