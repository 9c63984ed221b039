"""Mode `graph`: a DynamoGraphDeployment with the engines that the intent describes."""

from dynamo_shared.api.engines import BACKENDS, Command, Role, mocker
from dynamo_shared.api.engines.command import EngineSpec
from dynamo_shared.api.engines.engine import EngineLayout
from dynamo_shared.api.engines.images import runtime_image
from dynamo_shared.api.engines.options import flags
from dynamo_shared.api.engines.storage import VOLUME, model_path
from dynamo_shared.api.gpus import NVIDIA_GPU
from dynamo_shared.api.objects import MAIN, KubeObject
from dynamo_shared.api.registry.env import DYN_ROUTER_MODE
from dynamo_shared.api.registry.labels import GPU_PRODUCT
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENTS
from dynamo_shared.api.v1beta1.request import DynamoGraphDeploymentRequestSpec
from pydantic.alias_generators import to_camel

from dynamo_dynadmin.deploy.draft import Draft, PlatformDefaults
from dynamo_dynadmin.deploy.intent import Backend, DeployIntent, ServingMode

FRONTEND = "Frontend"
#: Component (name and type) of each role, with the names that profiling uses.
COMPONENTS = {Role.PREFILL: ("prefill", "prefill"), Role.DECODE: ("decode", "decode"), Role.AGG: ("worker", "worker")}
#: Length of prompts for which batches are sized if the workload names no length. Tokens.
TYPICAL_PROMPT = 4000


def draft_of(intent: DeployIntent, namespace: str, platform: PlatformDefaults) -> Draft:
    """The graph. The intent's objectives have no place in it."""
    backend = _backend(intent)
    draft = Draft({**DYNAMO_GRAPH_DEPLOYMENTS.type_meta})
    draft.put("metadata.name", intent.name, "name")
    draft.manifest["metadata"]["namespace"] = namespace
    draft.put("spec.backendFramework", backend, "backend")
    if intent.backend in (None, Backend.AUTO):
        draft.refuse("backend", why=f"mode graph requires one of {', '.join(BACKENDS)}; auto is only for objectives")
    for key, given in (("labels", intent.labels), ("annotations", intent.annotations)):
        if given:
            # On the graph, for users who select by them, and in its spec, for the objects that it becomes.
            draft.put(f"metadata.{key}", dict(given), key)
            draft.put(f"spec.{key}", dict(given), key)
    if priority := intent.placement.priority_class:
        # Grove's gangs use it; other schedulers read it in the pods, which also have it.
        draft.put("spec.priorityClassName", priority, "placement", "priorityClass")
    if topology := intent.placement.topology:
        constraint = {"clusterTopologyName": topology.name, "packDomain": topology.domain}
        draft.put("spec.topologyConstraint", constraint, "placement", "topology")
    draft.manifest["spec"]["components"] = []
    writer = _Writer(intent, platform, backend, draft)
    writer.frontend()
    for role in roles(intent):
        writer.worker(role)
    writer.report()
    return draft


def _backend(intent: DeployIntent) -> str:
    """The intent's backend, or vLLM, so that a graph without a backend is still checked for other mistakes."""
    return intent.backend.value if intent.backend not in (None, Backend.AUTO) else Backend.VLLM.value


def roles(intent: DeployIntent) -> tuple[Role, ...]:
    """The roles of an intent's workers."""
    disaggregated = intent.serving.mode is ServingMode.DISAGGREGATED
    return (Role.PREFILL, Role.DECODE) if disaggregated else (Role.AGG,)


class _Writer:
    def __init__(self, intent: DeployIntent, platform: PlatformDefaults, backend: str, draft: Draft) -> None:
        self._intent = intent
        self._platform = platform
        self._backend = backend
        self._draft = draft
        self._components: list[KubeObject] = draft.manifest["spec"]["components"]
        self._image = intent.images.runtime or runtime_image(
            backend, None, repository=platform.image_repository, version=platform.version
        )
        self._unknown_options: set[str] = set()
        cache = intent.model.cache
        self._spec = DynamoGraphDeploymentRequestSpec.model_validate(
            {
                "model": intent.model.name,
                "modelCache": cache
                and {"pvcName": cache.claim, "pvcModelPath": cache.path, "pvcMountPath": cache.mount_path},
            }
        )

    def frontend(self) -> None:
        """The frontend, with the router's mode."""
        path, container = self._component(FRONTEND, "frontend", "frontend")
        if router := self._intent.serving.router:
            container["env"] = [{"name": DYN_ROUTER_MODE, "value": router.value}]
            self._draft.came_from(f"{path}.podTemplate.spec.containers[0].env[0]", "serving", "router")
        self._everywhere(path)

    def worker(self, role: Role) -> None:
        """An engine with its arguments, GPUs, volumes and secrets."""
        intent, draft = self._intent, self._draft
        name, kind = COMPONENTS[role]
        path, container = self._component(name, kind, name)
        engine, nodes = self._engine(path)
        main = f"{path}.podTemplate.spec.containers[0]"
        command = self._command(role, engine)
        container["command"], container["args"] = list(command.command), list(command.args)
        if command.working_dir:
            container["workingDir"] = command.working_dir
        draft.came_from(f"{main}.args", "engine", "args")
        for option, value in self._options().items():
            made = flags(self._backend, option, value)
            if made is None:
                self._unknown_options.add(option)
            else:
                container["args"] += made
        container["args"] += intent.engine.args
        if intent.engine.env:
            container["env"] = [{"name": key, "value": value} for key, value in sorted(intent.engine.env.items())]
            for index, key in enumerate(sorted(intent.engine.env)):
                draft.came_from(f"{main}.env[{index}]", "engine", "env", key)
        self._resources(main, container, engine.gpus // nodes)
        self._storage(path, container)
        self._everywhere(path)
        if product := intent.hardware.gpu_product:
            selector = {**intent.placement.node_selector, GPU_PRODUCT: product}
            draft.put(f"{path}.podTemplate.spec.nodeSelector", selector, "hardware", "gpuProduct")
        if intent.serving.autoscaling:
            draft.put(f"{path}.scalingAdapter", {}, "serving", "autoscaling")
        if intent.hardware.shared_memory is not None:
            draft.put(f"{path}.sharedMemorySize", intent.hardware.shared_memory, "hardware", "sharedMemory")
        # DynamoModels find the component by it.
        model, revision = intent.model, {"revision": intent.model.revision} if intent.model.revision else {}
        draft.put(f"{path}.modelRef", {"name": model.served_name or model.name, **revision}, "model", "name")

    def report(self) -> None:
        """Report fields that only mode `objective` supports, and fields that do not fit the serving mode."""
        intent, draft = self._intent, self._draft
        draft.default("spec.components", [each["name"] for each in self._components], "components of the serving mode")
        if intent.images.runtime is None:
            draft.default("image", self._image, "the platform's image of the backend")
        for group, fields in (
            ("hardware", ("gpu_sku", "total_gpus", "vram_mib", "interconnect", "rdma")),
            ("workload", ("isl", "osl", "concurrency", "request_rate")),
            ("objective", ("ttft_ms", "itl_ms", "e2e_ms", "optimize_for", "search", "auto_apply")),
        ):
            section = getattr(intent, group)
            for field in fields:
                if getattr(section, field) is None:
                    continue
                if (group, field) == ("workload", "isl") and intent.engine.max_batch_size:
                    continue  # it sizes batches of prompts
                draft.cannot_express(group, section.alias_of(field), why="a graph has no objective; use mode objective")
        if intent.planner is not None:
            draft.cannot_express("planner", why="a planner needs an objective; use mode objective, or a PlannerConfig")
        for option in sorted(self._unknown_options):
            group = "model" if option == "revision" else "engine"
            draft.cannot_express(
                group, to_camel(option), why=f"{self._backend} has no argument for this option; use engine.args"
            )
        counts, present = intent.serving.replicas, {"frontend", *(COMPONENTS[role][0] for role in roles(intent))}
        for name in ("worker", "prefill", "decode"):
            if counts is not None and getattr(counts, name) is not None and name not in present:
                other = "disaggregated" if name != "worker" else "aggregated"
                draft.cannot_express(
                    "serving", "replicas", name, why=f"only graphs with serving.mode {other} have this field"
                )

    def _component(self, name: str, kind: str, count: str) -> tuple[str, KubeObject]:
        """Adds a component. Returns its path and its main container."""
        path = f"spec.components[{len(self._components)}]"
        counts = self._intent.serving.replicas
        replicas = getattr(counts, count) if counts is not None else None
        if replicas is None:
            replicas = 1
            self._draft.default(f"{path}.replicas", 1, f"serving.replicas.{count} is not set")
        self._draft.came_from(f"{path}.replicas", "serving", "replicas", count)
        container: KubeObject = {"name": MAIN, "image": self._image}
        self._draft.came_from(f"{path}.podTemplate.spec.containers[0].image", "images", "runtime")
        template = {"spec": {"containers": [container]}}
        self._components.append({"name": name, "type": kind, "replicas": replicas, "podTemplate": template})
        return path, container

    def _engine(self, path: str) -> tuple[EngineLayout, int]:
        """The engine and its number of nodes: the fewest that hold its GPUs in equal shares."""
        sizes, hardware, draft = self._intent.parallelism, self._intent.hardware, self._draft
        pipeline, data = sizes.pipeline or 1, sizes.data or 1
        asked = hardware.gpus_per_replica
        if sizes.tensor is not None:
            tensor = sizes.tensor
            total = tensor * pipeline * data
            if asked is not None and asked != total:
                why = f"{asked} GPUs differ from tensor {tensor} x pipeline {pipeline} x data {data} = {total}"
                self._refuse_once("hardware", "gpusPerReplica", why=why)
        else:
            total = asked or pipeline * data
            tensor = total // (pipeline * data)
            if tensor * pipeline * data != total or tensor < 1:
                why = f"{total} GPUs cannot be divided by pipeline {pipeline} x data {data}"
                self._refuse_once("hardware", "gpusPerReplica", why=why)
                tensor, total = 1, pipeline * data
            if asked is None:
                draft.default(f"{path}.podTemplate.spec.containers[0].resources", f"{total} GPU", "one engine's sizes")
        engine = EngineLayout(
            tp=tensor,
            pp=pipeline,
            dp=data,
            moe_ep=sizes.expert or 1,
            batch_size=self._intent.engine.max_batch_size,
            gpus=total,
        )
        nodes = engine.nodes(hardware.gpus_per_node or total)
        if nodes > 1:
            draft.put(f"{path}.multinode", {"nodeCount": nodes}, "hardware", "gpusPerNode")
        return engine, nodes

    def _refuse_once(self, *source: str, why: str) -> None:
        if all(each.detail != why for each in self._draft.problems):
            self._draft.refuse(*source, why=why)

    def _command(self, role: Role, engine: EngineLayout) -> Command:
        spec = EngineSpec(
            role=role,
            engine=engine,
            model=self._intent.model.served_name or self._intent.model.name,
            path=model_path(self._spec),
            isl=self._intent.workload.isl or TYPICAL_PROMPT,
        )
        if self._intent.mocker:
            return mocker.command(spec, profile_folder=None, kv_tokens=None)
        return BACKENDS[self._backend].command(spec)

    def _options(self) -> dict[str, object]:
        """Options that the intent names, with their keys in the table of flags."""
        engine = self._intent.engine
        named = {
            "context_length": engine.context_length,
            "dtype": engine.dtype,
            "quantization": engine.quantization,
            "prefix_cache": engine.prefix_cache,
            "trust_remote_code": engine.trust_remote_code,
            "revision": self._intent.model.revision,
        }
        return {name: value for name, value in named.items() if value is not None}

    def _resources(self, main: str, container: KubeObject, gpus: int) -> None:
        hardware, limits = self._intent.hardware, {}
        amounts = {"cpu": hardware.cpu, "memory": hardware.memory}
        requests = {name: amount for name, amount in amounts.items() if amount is not None}
        if hardware.memory is not None:
            limits["memory"] = hardware.memory
        if not self._intent.mocker:
            limits[NVIDIA_GPU] = str(gpus)
        container["resources"] = {
            **({"requests": requests} if requests else {}),
            **({"limits": limits} if limits else {}),
        }
        if not container["resources"]:
            del container["resources"]
        for kind in ("requests", "limits"):
            for name in ("cpu", "memory"):
                self._draft.came_from(f"{main}.resources.{kind}.{name}", "hardware", name)
        self._draft.came_from(f"{main}.resources", "hardware", "gpusPerReplica")

    def _storage(self, path: str, container: KubeObject) -> None:
        intent, draft, pod = self._intent, self._draft, f"{path}.podTemplate.spec"
        if cache := intent.model.cache:
            volume = {"name": VOLUME, "persistentVolumeClaim": {"claimName": cache.claim}}
            draft.put(f"{pod}.volumes", [volume], "model", "cache", "claim")
            mount = {"name": VOLUME, "mountPath": cache.mount_path}
            draft.put(f"{pod}.containers[0].volumeMounts", [mount], "model", "cache", "mountPath")
            if not cache.path and "HF_HOME" not in intent.engine.env:
                # A volume without a path is a Hugging Face cache, with the layout that downloads create.
                container.setdefault("env", []).append({"name": "HF_HOME", "value": cache.mount_path})
        if kernels := intent.compilation_cache:
            draft.put(f"{path}.compilationCache.pvcName", kernels.claim, "compilationCache", "claim")
            if kernels.mount_path:
                draft.put(f"{path}.compilationCache.mountPath", kernels.mount_path, "compilationCache", "mountPath")
            draft.came_from(f"{path}.compilationCache", "compilationCache", "mountPath")
        secret = intent.model.token_secret or self._platform.model_secret
        sources: list[KubeObject] = [{"secretRef": {"name": each}} for each in intent.engine.env_secrets]
        if secret:
            # With an optional Secret, models that need no token start without it.
            reference: KubeObject = (
                {"name": secret} if intent.model.token_secret else {"name": secret, "optional": True}
            )
            sources.append({"secretRef": reference})
            if not intent.model.token_secret:
                draft.default(f"{pod}.containers[0].envFrom", secret, "the platform's Secret of models")
        if sources:
            for index in range(len(intent.engine.env_secrets)):
                draft.came_from(f"{pod}.containers[0].envFrom[{index}]", "engine", "envSecrets", index)
            draft.put(f"{pod}.containers[0].envFrom", sources, "model", "tokenSecret")

    def _everywhere(self, path: str) -> None:
        """Add the fields that pods of all components have."""
        intent, spec = self._intent, f"{path}.podTemplate.spec"
        placement = intent.placement
        for field, value, source in (
            ("imagePullSecrets", [{"name": each} for each in intent.images.pull_secrets], ("images", "pullSecrets")),
            ("nodeSelector", dict(placement.node_selector), ("placement", "nodeSelector")),
            ("tolerations", [dict(each) for each in placement.tolerations], ("placement", "tolerations")),
            ("priorityClassName", placement.priority_class, ("placement", "priorityClass")),
            ("schedulerName", placement.scheduler, ("placement", "scheduler")),
        ):
            if value:
                self._draft.put(f"{spec}.{field}", value, *source)
                if isinstance(value, list):
                    for index in range(len(value)):
                        self._draft.came_from(f"{spec}.{field}[{index}]", *source, index)
