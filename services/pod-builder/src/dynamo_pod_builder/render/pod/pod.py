"""The pod spec of a component, assembled in the reference's order (behaviour, section 3.2)."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from dynamo_shared.api.field_errors import shown
from dynamo_shared.api.objects import MAIN, RUNTIME, KubeObject
from dynamo_shared.api.probes import PROBES, asks

from dynamo_pod_builder.render import names
from dynamo_pod_builder.render.access import pull_secrets
from dynamo_pod_builder.render.backends import backend_of
from dynamo_pod_builder.render.checkpoint.restore import start_from
from dynamo_pod_builder.render.context import PodContext
from dynamo_pod_builder.render.errors import RenderError
from dynamo_pod_builder.render.pod import volumes
from dynamo_pod_builder.render.pod.containers import Defaults, defaults_of, frontend, worker
from dynamo_pod_builder.render.pod.env import merge_env, standard
from dynamo_pod_builder.render.pod.merge import merge, merge_container, with_probes_over
from dynamo_pod_builder.render.pod.placement import PodRole
from dynamo_pod_builder.render.pod.template import with_runtime
from dynamo_pod_builder.render.sharing import failover, gpu_memory

#: Group that owns mounted volumes, so that images that do not run as root can write their caches.
FS_GROUP = 1000


#: Fields in which names must be unique in a pod. Init containers first: most of the platform's containers are some.
_NAMED = {
    "container": ("initContainers", "containers"),
    "volume": ("volumes",),
    "claim": ("resourceClaims",),
}

#: How messages name the pods of a replica whose roles may have their own templates.
_PODS_OF_ROLES = {PodRole.LEADER: "the leader", PodRole.WORKER: "the workers"}


def pod_spec(context: PodContext) -> KubeObject:
    """Pod spec of one component: defaults of its type, the user's template over them, then the backend's changes.

    Raises RenderError, which names the role if roles have templates.
    """
    pods = _PODS_OF_ROLES.get(context.placement.role)
    try:
        return _pod_spec(context)
    except RenderError as error:
        if pods is None or not context.has_own_commands:
            raise
        raise error.of_pods(pods) from error


def _pod_spec(context: PodContext) -> KubeObject:
    user: Mapping[str, Any] = context.template.get("spec") or {}
    containers: list[KubeObject] = user.get("containers") or []
    backend = backend_of(context)
    defaults = defaults_of(context.type)

    main = _main(context, defaults, containers)
    cache = volumes.cache_mount(context, backend)
    if cache is not None:
        main["volumeMounts"] = volumes.with_cache(context.component, main.get("volumeMounts", []), cache)
    # Copied before shared memory is added: a sidecar shares the data of the engine, not its memory.
    shared_mounts = list(main.get("volumeMounts", ()))
    backend.update_container(main, context)

    pod = merge(defaults.pod(context), {key: value for key, value in user.items() if key != "containers"})
    if context.is_worker:
        # The author's own settings also override these for an init container that runs the Dynamo runtime.
        pod = with_runtime(pod, lambda runtime: _container(context, worker.runtime(context), runtime))
    # Even an empty security context is the user's decision, and replaces the default.
    if "securityContext" not in user:
        pod["securityContext"] = {"fsGroup": FS_GROUP}
    account = (
        names.discovery_account(context.graph) if context.discovery.kubernetes else context.observed.service_account
    )
    if account and not pod.get("serviceAccountName"):
        pod["serviceAccountName"] = account
    if cache is not None and all(volume["name"] != cache["name"] for volume in pod.get("volumes", ())):
        pod["volumes"] = [*pod.get("volumes", ()), volumes.claim(cache["name"])]
    volumes.share_memory(main, pod, context.spec.shared_memory_size)

    others = [each for each in containers if each["name"] != MAIN]
    pod["containers"] = [main, *_with_frontend(context, others, shared_mounts)]
    backend.update_pod(pod, context)
    for part in ("containers", "initContainers"):
        if part in pod:
            pod[part] = [_as_kubernetes_writes(_with_each_variable_once(each)) for each in pod[part]]
    pod["volumes"] = volumes.in_mount_order(pod.get("volumes", []), main.get("volumeMounts", []))
    if not pod["volumes"]:
        del pod["volumes"]
    volumes.name_as_allowed(pod)
    gpu_memory.share(pod, context)
    failover.stand_by(pod, context, backend)
    if context.observed.restore is not None:
        start_from(pod, context.observed.restore, context.engines)
    pull_secrets.add(pod, context.observed.pull_secrets, context.template_annotations)
    _check_names(context.component, pod)
    return pod


def _check_names(component: str, pod: KubeObject) -> None:
    """Raise RenderError if one of the author's names equals a name that the platform adds.

    Grove accepts such a template, but creates no pods from it.
    """
    for what, fields in _NAMED.items():
        count = Counter(each["name"] for field in fields for each in pod.get(field) or ())
        name, times = next(iter(count.most_common(1)), ("", 0))
        if times > 1:
            message = f"{shown(name)} is the name of a {what} that the platform adds to these pods"
            raise RenderError(component, f"podTemplate.spec.{fields[0]}", message, f"rename your {what}")


def _main(context: PodContext, defaults: Defaults, containers: list[KubeObject]) -> KubeObject:
    """The engine's container. With the Dynamo runtime as a sidecar, it runs as its image does without Dynamo."""
    user = next((each for each in containers if each["name"] == MAIN), None)
    if context.runtime_sidecar is None:
        main = _container(context, defaults.container(context), user or {})
    else:
        main = _merged(context, {"name": MAIN, "env": []}, user or {})
    if not main.get("image"):
        path = f"podTemplate.spec.containers[{MAIN}].image"
        how = "name the image that the component runs"
        if others := ", ".join(each["name"] for each in containers if each["name"] != MAIN):
            how += f", in a container named {MAIN}; the other containers are {others}"
        raise RenderError(context.component, path, "is required", how)
    return main


def _as_kubernetes_writes(container: KubeObject) -> KubeObject:
    """The container with `resources`, even if empty, and without nulls: Grove stores what it gets."""
    if "resources" in container and all(container.get(probe, True) is not None for probe in PROBES):
        return container
    kept = {key: value for key, value in container.items() if key not in PROBES or value is not None}
    return {**kept, "resources": kept.get("resources") or {}}


def _with_each_variable_once(container: KubeObject) -> KubeObject:
    """Only the last of several variables of one name, which is the effective one: server-side apply refuses duplicates."""
    last = {each["name"]: index for index, each in enumerate(container.get("env") or ())}
    if len(last) == len(container.get("env") or ()):
        return container
    return {**container, "env": [container["env"][index] for index in sorted(last.values())]}


def _container(context: PodContext, base: KubeObject, user: KubeObject) -> KubeObject:
    """`user` over `base`; both environments override the addresses of the infrastructure."""
    return _merged(context, {**base, "env": merge_env(standard(context.config), base["env"])}, user)


def _merged(context: PodContext, base: KubeObject, user: KubeObject) -> KubeObject:
    container = merge_container(base, user)
    container["env"] = merge_env(base["env"], user.get("env") or ())
    volumes.check_mounts(context.component, container)
    for probe in PROBES:
        if probe in container and not asks(container[probe]):
            part = "initContainers" if container["name"] == RUNTIME else "containers"
            path = f"podTemplate.spec.{part}[{container['name']}].{probe}"
            raise RenderError(context.component, path, "has no handler", "set httpGet, exec, tcpSocket or grpc")
    return container


def _with_frontend(
    context: PodContext, containers: list[KubeObject], shared_mounts: list[KubeObject]
) -> list[KubeObject]:
    """The user's other containers; the frontend sidecar is rebuilt over the defaults of a frontend."""
    sidecar = context.spec.frontend_sidecar
    if not sidecar:
        return containers
    if all(each["name"] != sidecar for each in containers):
        raise RenderError(
            context.component,
            "frontendSidecar",
            f"names {sidecar!r}, but the pod template has no such container next to {MAIN}",
            "add it to podTemplate.spec.containers",
        )
    base = frontend.container(context, sidecar)
    rebuilt = []
    for each in containers:
        if each["name"] != sidecar:
            rebuilt.append(each)
            continue
        at_once = [probe for probe in PROBES if f"{sidecar}.{probe}" in context.observed.lacking]
        container = _container(context, base, with_probes_over(base, each, at_once))
        own = container.get("volumeMounts", [])
        taken = {mount[field] for mount in own for field in ("name", "mountPath")}
        missing = [mount for mount in shared_mounts if taken.isdisjoint((mount["name"], mount["mountPath"]))]
        if missing:
            container["volumeMounts"] = [*own, *missing]
        rebuilt.append(container)
    return rebuilt
