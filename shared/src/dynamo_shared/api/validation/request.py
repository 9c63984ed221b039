"""DynamoGraphDeploymentRequest: known enum values, known hardware, and a spec that is immutable once it is used."""

from collections.abc import Iterator
from typing import Any

from dynamo_shared.api.contracts import PlannerConfig
from dynamo_shared.api.contracts.contract_checks import problems, remarks
from dynamo_shared.api.contracts.profiler import ProfilerConfig
from dynamo_shared.api.engines import BACKENDS, CHOICE
from dynamo_shared.api.field_errors import shown, suggestion_for
from dynamo_shared.api.graph_overrides import unknown_fields
from dynamo_shared.api.request_parts import profiling_containers
from dynamo_shared.api.rules import Location
from dynamo_shared.api.untrusted.reading import below, items, mapping, text
from dynamo_shared.api.v1beta1.request import OptimizationType
from dynamo_shared.api.validation.facts import Facts
from dynamo_shared.api.validation.rule_set import (
    ALPHA,
    BETA,
    CREATED,
    REQUEST,
    UPDATED,
    RuleSet,
    Violations,
    broken,
    listed,
)

REQUESTS = RuleSet("Requests", (REQUEST,))
REQUESTS_AT_CREATION = RuleSet("Requests", (REQUEST,), CREATED, (ALPHA,))
PLACES_OF_REQUESTS = RuleSet("Requests", (REQUEST,), CREATED)
ADVICE_FOR_REQUESTS = RuleSet("Requests", (REQUEST,))
CHANGES_OF_REQUESTS = RuleSet("Requests", (REQUEST,), UPDATED)

#: GPU types that a request may name, as in Dynamo 1.6, which has neither gb300 nor rtx_pro_6000_server. `gb200` is the
#: newer name of `gb200_sxm`.
GPU_SKUS = (
    "vr_nvl72",
    "gb300",
    "gb200",
    "gb200_sxm",
    "gb10",
    "b300_sxm",
    "b200_sxm",
    "h200_sxm",
    "h100_sxm",
    "h100_pcie",
    "a100_sxm",
    "a100_pcie",
    "a30",
    "rtx_pro_6000_server",
    "l40s",
    "l40",
    "l4",
    "v100_sxm",
    "v100_pcie",
    "t4",
    "mi200",
    "mi300",
)

_UNKNOWN_WORD = "{value} is not allowed; one of {allowed}{hint}"


@REQUESTS.rule(_UNKNOWN_WORD, versions=(BETA,), added=True)
def words_are_known(spec: dict[str, Any], _facts: Facts) -> Violations:
    """Backend, search strategy and GPU type are enums."""
    yield from _unknown_word(spec.get("backend"), ("auto", *BACKENDS), ("spec", "backend"))
    yield from _unknown_word(spec.get("searchStrategy"), ("rapid", "thorough"), ("spec", "searchStrategy"))
    yield from _unknown_word(below(spec, ("hardware", "gpuSku")), GPU_SKUS, ("spec", "hardware", "gpuSku"))


@REQUESTS.rule(_UNKNOWN_WORD, versions=(ALPHA,))
def optimization_is_known(spec: dict[str, Any], _facts: Facts) -> Violations:
    """The optimization type in the free-form profiling configuration is latency or throughput. The schema of v1beta1 says so."""
    at = ("profilingConfig", "config", "sla", "optimizationType")
    yield from _unknown_word(below(spec, at), tuple(map(str, OptimizationType)), ("spec", *at))


def _unknown_word(value: object, allowed: tuple[str, ...], at: Location) -> Violations:
    if isinstance(value, str) and value and value not in allowed:
        hint = suggestion_for(value, allowed)
        yield at, _UNKNOWN_WORD.format(value=shown(value), allowed=listed(map(shown, allowed)), hint=hint)


@REQUESTS.rule(
    f"'thorough' needs a backend to measure: set spec.backend to {CHOICE}, or this to rapid", versions=(BETA,)
)
def thorough_search_has_a_backend(spec: dict[str, Any], _facts: Facts) -> Violations:
    """A thorough search measures one backend on the cluster, so the backend cannot be auto."""
    if spec.get("searchStrategy") == "thorough" and spec.get("backend") in (None, "", "auto"):
        yield broken(("spec", "searchStrategy"))


@REQUESTS.rule("has concurrency and requestRate, but each determines the other: write one of them", versions=(BETA,))
def there_is_one_load(spec: dict[str, Any], _facts: Facts) -> Violations:
    """The load is either a number of concurrent requests or a number of requests per second."""
    workload = mapping(spec.get("workload"))
    if workload.get("concurrency") is not None and workload.get("requestRate") is not None:
        yield broken(("spec", "workload"))


@REQUESTS.rule("has e2eLatency together with ttft or itl: write either e2eLatency, or ttft and itl", versions=(BETA,))
def there_is_one_objective(spec: dict[str, Any], _facts: Facts) -> Violations:
    """An end-to-end latency excludes the other two latencies."""
    sla = mapping(spec.get("sla"))
    if sla.get("e2eLatency") is not None and (sla.get("ttft") is not None or sla.get("itl") is not None):
        yield broken(("spec", "sla"))


#: Planning needs values above zero. Milliseconds, tokens, requests.
_POSITIVE = (("sla", ("ttft", "itl", "e2eLatency")), ("workload", ("isl", "osl", "concurrency", "requestRate")))
#: Zero counts as absent: the value is then discovered.
_NOT_NEGATIVE = ("vramMb", "totalGpus", "numGpusPerNode")


@REQUESTS.rule("{value} is not allowed: write a number above 0, or leave it out", versions=(BETA,), added=True)
def there_is_something_to_plan_for(spec: dict[str, Any], _facts: Facts) -> Violations:
    """Latencies and loads are positive, and no number of the hardware is negative."""
    for section, names in (*_POSITIVE, ("hardware", _NOT_NEGATIVE)):
        for name in names:
            value = mapping(spec.get(section)).get(name)
            if not isinstance(value, int | float) or isinstance(value, bool):
                continue
            if value < 0 or (value == 0 and section != "hardware"):
                yield broken(("spec", section, name), value=shown(value))


@REQUESTS.rule("{problem}", versions=(BETA,))  # the messages of the contract
def the_planner_understands_its_configuration(spec: dict[str, Any], _facts: Facts) -> Violations:
    """spec.features.planner is a PlannerConfig: its types, bounds and relations between fields must be valid."""
    config = below(spec, ("features", "planner"))
    if isinstance(config, dict):
        for location, problem in problems(PlannerConfig, config):
            yield ("spec", "features", "planner", *location), problem


@REQUESTS.rule(
    "set gpuSku, vramMb or numGpusPerNode: this platform may not read nodes, so it cannot discover GPUs",
    versions=(BETA,),
)
def hardware_is_named_where_it_cannot_be_discovered(spec: dict[str, Any], facts: Facts) -> Violations:
    """On a platform for one namespace without GPU discovery, a request must state the hardware."""
    hardware = mapping(spec.get("hardware"))
    named = any(hardware.get(name) for name in ("gpuSku", "vramMb", "numGpusPerNode"))
    if not named and not facts.cluster_wide and not facts.gpu_discovery:
        yield broken(("spec", "hardware"))


@REQUESTS_AT_CREATION.rule(
    "this platform may not read nodes, so it cannot discover GPUs: set profilingConfig.config.hardware.gpuType and "
    "numGpusPerNode, or write apiVersion nvidia.com/v1beta1 with spec.hardware"
)
def hardware_is_named_in_the_configuration(spec: dict[str, Any], facts: Facts) -> Violations:
    """On such a platform, a v1alpha1 request must state the hardware in the profiler's configuration."""
    hardware = mapping(below(spec, ("profilingConfig", "config", "hardware")))
    names = ("gpuType", "gpu_type", "numGpusPerNode", "num_gpus_per_node")
    if not facts.cluster_wide and not facts.gpu_discovery and not any(hardware.get(name) for name in names):
        yield broken(("spec",))


@PLACES_OF_REQUESTS.rule(
    "{namespace} is not the request's namespace: a user who may create requests here could create graphs there; create the "
    "request in {namespace}",
    versions=(ALPHA,),
    added=True,
)
def the_graph_is_in_the_namespace_of_its_request(obj: dict[str, Any], _facts: Facts) -> Violations:
    """A graph is created only in the namespace of its request."""
    namespace, at = below(obj, ("metadata", "namespace")), ("spec", "deploymentOverrides", "namespace")
    target = text(below(obj, at))
    if target and isinstance(namespace, str) and target != namespace:
        yield broken(at, namespace=target)


#: The name of a request is a label value of all objects that are created for it. Characters.
_LONGEST_NAME = 63


@PLACES_OF_REQUESTS.rule(
    f"has {{length}} characters, but it becomes a label value, which has at most {_LONGEST_NAME}: shorten it by {{excess}}",
    added=True,
)
def the_name_of_a_request_is_a_label(obj: dict[str, Any], _facts: Facts) -> Violations:
    """The name of a request is a label value of the objects that are created for it."""
    name = text(below(obj, ("metadata", "name")))
    if len(name) > _LONGEST_NAME:
        yield broken(("metadata", "name"), length=len(name), excess=len(name) - _LONGEST_NAME)


@PLACES_OF_REQUESTS.rule(
    "graphs have no such field, so the API server would reject the generated graph{hint}", versions=(BETA,), added=True
)
def overrides_are_fields_of_graphs(obj: dict[str, Any], _facts: Facts) -> Violations:
    """An override becomes part of the graph that is generated after profiling, hours later, so its fields are checked now."""
    for at, known in unknown_fields(mapping(below(obj, ("spec", "overrides", "dgd")))):
        yield broken(("spec", "overrides", "dgd", *at), hint=suggestion_for(str(at[-1]), known))


_PROFILER_CONFIG = "{problem}"  # the messages of the contract


_UNREADABLE = "hardware, sweep, engine and deployment have no effect until this is corrected"


@ADVICE_FOR_REQUESTS.rule(_UNREADABLE, _PROFILER_CONFIG, versions=(ALPHA,), added=True)
def what_the_profiler_does_not_read(spec: dict[str, Any], _facts: Facts) -> Violations:
    """Some settings of the profiler's configuration have no effect, or cannot be read."""
    config = below(spec, ("profilingConfig", "config"))
    if not isinstance(config, dict):
        return
    wrong = problems(ProfilerConfig, config)
    for location, problem in (*wrong, *remarks(ProfilerConfig, config)):
        yield ("spec", "profilingConfig", "config", *location), problem
    if wrong:
        yield ("spec", "profilingConfig", "config"), _UNREADABLE


@ADVICE_FOR_REQUESTS.rule("{problem}", versions=(BETA,), added=True)  # the messages of the contract
def what_the_planner_does_not_read(spec: dict[str, Any], _facts: Facts) -> Violations:
    """Some settings of the planner's configuration have no effect."""
    config = below(spec, ("features", "planner"))
    if isinstance(config, dict):
        for location, problem in remarks(PlannerConfig, config):
            yield ("spec", "features", "planner", *location), problem


_OF_JOB = ("configMapRef", "outputPVC", "resources", "nodeSelector")


@ADVICE_FOR_REQUESTS.rule("has no effect: engines are simulated, and no Job runs; {instead}", added=True)
def what_a_simulation_does_not_use(spec: dict[str, Any], _facts: Facts) -> Violations:
    """A simulated request has no profiling Job, so fields for the Job have no effect."""
    profiling = mapping(spec.get("profilingConfig"))
    if not _is_simulated(spec):
        return
    for name in _OF_JOB:
        if profiling.get(name):
            instead = "leave out sweep.useAiConfigurator, and name a backend, to measure them"
            yield broken(("spec", "profilingConfig", name), instead=instead)
    if not profiling:
        for at in _unused_in_a_simulation(spec):
            yield broken(at, instead="set searchStrategy to thorough to measure them")


_ONE_IMAGE = "has no effect: this container runs the profiler's image, because it needs its Python; leave it out"
_NO_CONTAINER = "has no effect: the Job has only the containers profiler and output-copier; leave it out"


@ADVICE_FOR_REQUESTS.rule(_ONE_IMAGE, _NO_CONTAINER, versions=(BETA,), added=True)
def containers_are_those_of_the_job(spec: dict[str, Any], _facts: Facts) -> Violations:
    """A profiling Job has exactly two containers, and both run the profiler's image."""
    pod = mapping(below(spec, ("overrides", "profilingJob", "template", "spec")))
    if _is_simulated(spec):
        return
    profiler, relay = profiling_containers(pod)
    for place, each in enumerate(items(pod.get("containers"))):
        at = ("spec", "overrides", "profilingJob", "template", "spec", "containers", place)
        if each is relay and each.get("image"):
            yield (*at, "image"), _ONE_IMAGE
        elif each is not relay and each is not profiler:
            yield at, _NO_CONTAINER


_LATENCIES = ("ttft", "itl", "e2eLatency")


@ADVICE_FOR_REQUESTS.rule(
    "has no effect together with {names}: the simulation selects engines by latency; leave one or the other out",
    added=True,
)
def latencies_are_the_objective(spec: dict[str, Any], _facts: Facts) -> Violations:
    """A simulation optimizes for latency or throughput only if the request sets no latencies."""
    at: Location = ("profilingConfig", "config", "sla") if mapping(spec.get("profilingConfig")) else ("sla",)
    sla = mapping(below(spec, at))
    given = [name for name in _LATENCIES if sla.get(name) is not None]
    if sla.get("optimizationType") and given and _is_simulated(spec):
        yield broken(("spec", *at, "optimizationType"), names=listed(given))


def _is_simulated(spec: dict[str, Any]) -> bool:
    profiling = mapping(spec.get("profilingConfig"))
    if not profiling:
        return spec.get("searchStrategy") != "thorough"
    sweep = mapping(below(profiling, ("config", "sweep")))
    simulates = any(sweep.get(name) is True for name in ("useAiConfigurator", "use_ai_configurator"))
    return simulates or spec.get("useMocker") is True or spec.get("backend") == "auto"


def _unused_in_a_simulation(spec: dict[str, Any]) -> Iterator[Location]:
    """Fields of a v1beta1 request that go to the profiler of a Job or to its pod. Placement and pull secrets apply to graphs."""
    hardware, job = mapping(spec.get("hardware")), mapping(below(spec, ("overrides", "profilingJob")))
    template, at = mapping(job.get("template")), ("spec", "overrides", "profilingJob")
    yield from (("spec", "hardware", name) for name in ("interconnect", "rdma") if hardware.get(name))
    yield from ((*at, str(name)) for name in job if name != "template")
    yield from ((*at, "template", str(name)) for name, value in template.items() if name != "spec" and value)
    for name in mapping(template.get("spec")):
        if name not in ("tolerations", "imagePullSecrets"):
            yield (*at, "template", "spec", str(name))


_FROZEN_PHASES = ("Profiling", "Deploying", "Deployed")


@CHANGES_OF_REQUESTS.rule(
    "cannot be changed in {field} {phase}: profiling has begun; delete the request and create it again"
)
def spec_stays_once_profiling_began(obj: dict[str, Any], old: dict[str, Any], _facts: Facts) -> Violations:
    """The spec cannot be changed while a request is profiled or deployed, or after it has been deployed.

    In v1alpha1 a request in state Ready has been deployed if status.deployment.created is true.
    """
    field, phase = _stage(old)
    if phase in _FROZEN_PHASES or _is_deployed(old):
        for name in _changed(obj, old):
            yield broken(("spec", name), field=field, phase=phase)


@CHANGES_OF_REQUESTS.rule(
    "cannot be changed together with autoApply in {field} {phase}: the graph to be deployed was generated for the "
    "earlier spec; change only autoApply, or create the request again",
    added=True,
)
def what_is_approved_is_what_was_profiled(obj: dict[str, Any], old: dict[str, Any], _facts: Facts) -> Violations:
    """`autoApply` deploys a result that waits for approval, so an update that switches it on changes nothing else."""
    field, phase = _stage(old)
    if phase != "Ready" or _is_deployed(old) or _applies(old, field) or not _applies(obj, field):
        return
    for name in _changed(obj, old):
        if name != "autoApply":
            yield broken(("spec", name), field=field, phase=phase)


def _stage(old: dict[str, Any]) -> tuple[str, str]:
    """The progress of a request, and the field with it: the phase, in v1alpha1 the state."""
    status = mapping(old.get("status"))
    field = "phase" if "phase" in status else "state"
    return field, text(status.get(field))


def _is_deployed(old: dict[str, Any]) -> bool:
    """Whether a v1alpha1 request has its graph; its state stays Ready then."""
    field, phase = _stage(old)
    return field == "state" and phase == "Ready" and below(old, ("status", "deployment", "created")) is True


def _applies(obj: dict[str, Any], field: str) -> bool:
    """Whether the result of a request is deployed: by default yes in v1beta1, and no in v1alpha1."""
    auto_apply = below(obj, ("spec", "autoApply"))
    return auto_apply is not False if field == "phase" else auto_apply is True


def _changed(obj: dict[str, Any], old: dict[str, Any]) -> Iterator[str]:
    """Names of the changed fields of a spec."""
    now, before = mapping(obj.get("spec")), mapping(old.get("spec"))
    for name in (*before, *(each for each in now if each not in before)):
        if now.get(name) != before.get(name):
            yield str(name)
