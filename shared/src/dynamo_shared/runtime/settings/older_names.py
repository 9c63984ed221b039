"""Variables and flags of earlier operators, and the settings that replace them (seed 003, Configuration).

Each one that is given is logged as a warning at start. The variable of the current name takes precedence.
"""

#: Older name -> settings that get its value. A name with dashes is a flag of `dynamoctl run`.
OLDER_NAMES: dict[str, tuple[str, ...]] = {
    "ADD_NAMESPACE_PREFIX_TO_IMAGE_NAME": ("platform.imageBuilder.addNamespacePrefix",),
    "BENTO_IMAGE_BUILD_ENGINE": ("platform.imageBuilder.engine",),
    "BUILDKIT_URL": ("platform.imageBuilder.buildkit.url",),
    "DOCKER_REGISTRY_BENTO_REPOSITORY_NAME": ("platform.imageBuilder.registry.repository",),
    "DOCKER_REGISTRY_IN_CLUSTER_SERVER": ("platform.imageBuilder.registry.inClusterServer",),
    "DOCKER_REGISTRY_SECURE": ("platform.imageBuilder.registry.secure",),
    "DOCKER_REGISTRY_SERVER": ("platform.imageBuilder.registry.server",),
    "DOCKER_REGISTRY_USERNAME": ("platform.imageBuilder.registry.username",),
    "DYNAMO_INGRESS_SUFFIX": ("ingress.hostSuffix",),
    "ESTARGZ_ENABLED": ("platform.imageBuilder.estargz",),
    "INTERNAL_IMAGES_BUILDKIT": ("platform.imageBuilder.buildkit.image",),
    "LOG_LEVEL": ("logging.level",),
    "YATAI_DEPLOYMENT_NAMESPACE": ("namespace.restricted",),
    "YATAI_ENDPOINT": ("platform.imageBuilder.store.endpoint",),
    "YATAI_IMAGE_BUILDER_NAMESPACE": ("platform.imageBuilder.namespace",),
    "YATAI_SYSTEM_NAMESPACE": ("platform.admission.namespace", "platform.standby.namespace"),
    # That operator passed both addresses to workloads, and had no NATS and etcd of its own.
    "--natsAddr": ("infrastructure.natsAddress",),
    "--etcdAddr": ("infrastructure.etcdAddress",),
}
