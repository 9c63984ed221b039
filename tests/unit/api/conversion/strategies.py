"""Objects of our kinds, generated from their own schemas: every field, type, enum, bound and rule.

Embedded Kubernetes types are realistic parts of pods, with an invalid part now and then.
"""

import re
from functools import cache, partial
from typing import Any

from dynamo_shared.api.crds.build import schema_of
from dynamo_shared.api.resources import Resource
from dynamo_shared.api.rules import CelRule, rule_of
from hypothesis import strategies as st

Strategy = st.SearchStrategy[Any]

WORDS = (
    "",
    "a",
    "b",
    "main",
    "worker",
    "leader",
    "prefill",
    "epp",
    "default",
    "rack",
    "vllm",
    "x-1",
    "1.5.0",
    "2024-05-01T10:00:00Z",
    "1.5.0",
    "ö/.~",
)
NAMES = ("Frontend", "Decode", "Prefill", "a", "b-1", "Planner")
AMOUNTS = (0, 1, 8, "0", "1", "500m", "2Gi", "-1", "0Gi", "1e3", ".5", "64Mi")
CONTAINERS = ("main", "sidecar-frontend", "sidecar", "main", "log")

text = st.sampled_from(WORDS)
amount = st.sampled_from(AMOUNTS)
junk: Strategy = st.recursive(
    st.sampled_from([None, True, False, 0, 1, -3, 0.5, "", "text", "8Gi"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["name", "x", "env", "limits"]), inner, max_size=2)
    ),
    max_leaves=3,
)


def mostly(strategy: Strategy) -> Strategy:
    """Usually a valid value, and one time in eight another one."""
    return st.integers(0, 7).flatmap(lambda dice: strategy if dice else junk)


@st.composite
def objects(
    draw: st.DrawFn, required: dict[str, Strategy], optional: dict[str, Strategy], most: int = 5
) -> dict[str, Any]:
    """An object with all required and some optional fields."""
    names = sorted(optional)
    chosen = draw(st.lists(st.sampled_from(names), unique=True, max_size=most)) if names else []
    result = {name: draw(strategy) for name, strategy in required.items()}
    result.update((name, draw(optional[name])) for name in chosen)
    return result


def lists(items: Strategy, **bounds: Any) -> Strategy:
    return st.lists(items, max_size=bounds.pop("max_size", 3), **bounds)


string_map = st.dictionaries(st.sampled_from(["a", "app", "nvidia.com/x"]), text, max_size=2)
secret = st.fixed_dictionaries({"secretRef": st.fixed_dictionaries({"name": text})})
env_var = objects(
    {"name": st.sampled_from(["A", "B", "C", "D"])},
    {"value": text, "valueFrom": st.just({"secretKeyRef": {"name": "s", "key": "k"}}), "odd": junk},
    most=2,
)
env = lists(mostly(env_var))
env_from = lists(mostly(secret | st.just({"configMapRef": {"name": "c"}, "prefix": "P_"})), max_size=2)
handler = st.sampled_from([{"httpGet": {"path": "/live", "port": 9090}}, {"exec": {"command": ["true"]}}, {}])
probe = st.builds(
    lambda asked, rest: {**asked, **rest}, handler, objects({}, {"periodSeconds": st.integers(1, 9), "httpGet": junk})
)
sides = st.dictionaries(
    st.sampled_from(["cpu", "memory", "nvidia.com/gpu", "amd.com/gpu", "ephemeral-storage"]), mostly(amount), max_size=3
)
claim = objects({"name": st.sampled_from(["gpu", "net"])}, {"request": text})
resources = objects(
    {}, {"limits": mostly(sides), "requests": mostly(sides), "claims": mostly(lists(claim, max_size=2)), "odd": junk}
)
mount = objects(
    {"name": st.sampled_from(["models", "cache"]), "mountPath": st.sampled_from(["/m", "/c", "/root/.cache"])},
    {"readOnly": st.booleans(), "subPath": text},
    most=1,
)
CONTAINER = {
    "image": text,
    "command": lists(text),
    "args": lists(text),
    "env": mostly(env),
    "envFrom": mostly(env_from),
    "resources": mostly(resources),
    "livenessProbe": mostly(probe),
    "readinessProbe": mostly(probe),
    "startupProbe": mostly(probe),
    "volumeMounts": mostly(lists(mostly(mount))),
    "ports": lists(st.fixed_dictionaries({"containerPort": st.integers(1, 9)}), max_size=1),
    "odd": junk,
}
container = objects({"name": st.sampled_from(CONTAINERS)}, CONTAINER)
main_container = objects({}, {**CONTAINER, "name": text})
POD = {
    "containers": mostly(lists(mostly(container))),
    "initContainers": lists(container, max_size=1),
    "volumes": lists(st.fixed_dictionaries({"name": text, "emptyDir": st.just({})}), max_size=2),
    "nodeSelector": mostly(string_map),
    "tolerations": mostly(lists(st.just({"key": "gpu", "operator": "Exists"}), max_size=1)),
    "securityContext": junk,
    "odd": junk,
}
pod_spec = objects({}, POD, most=3)
pod_template = objects(
    {},
    {
        "spec": mostly(objects({"containers": lists(mostly(container))}, POD, most=2)),
        "metadata": mostly(objects({}, {"labels": mostly(string_map), "annotations": string_map, "name": text})),
        "odd": junk,
    },
)
EMBEDDED: dict[str, Strategy] = {
    "io.k8s.api.core.v1.EnvVar": env_var,
    "io.k8s.api.core.v1.Container": main_container,
    "io.k8s.api.core.v1.PodSpec": pod_spec,
    "io.k8s.api.core.v1.PodTemplateSpec": pod_template,
    "io.k8s.api.core.v1.Probe": probe,
    "io.k8s.api.core.v1.ResourceClaim": claim,
    "io.k8s.api.core.v1.Toleration": objects({"key": text}, {"operator": text, "odd": junk}),
    "io.k8s.api.autoscaling.v2.MetricSpec": objects({"type": text}, {"odd": junk}),
    "io.k8s.api.autoscaling.v2.HorizontalPodAutoscalerBehavior": objects({}, {"scaleUp": junk, "scaleDown": junk}),
    "io.k8s.api.batch.v1.JobSpec": objects(
        {},
        {
            "template": mostly(objects({}, {"spec": mostly(pod_spec), "metadata": junk})),
            "backoffLimit": st.integers(0, 3),
        },
    ),
}
#: Free-form settings of a profiler, where they have a meaning.
profiling = objects(
    {},
    {
        "sla": mostly(
            objects(
                {},
                {
                    "ttft": mostly(st.sampled_from([1, 0.5])),
                    "itl": st.just(20),
                    "optimizationType": text | st.just("latency"),
                    "isl": mostly(st.just(4000) | st.just(10)),
                    "osl": st.just(150),
                    "odd": junk,
                },
            )
        ),
        "deployment": mostly(
            objects(
                {},
                {
                    "modelCache": mostly(
                        objects(
                            {},
                            {
                                "pvcName": text,
                                "modelPathInPvc": text,
                                "pvcMountPath": text | st.just("/opt/model-cache"),
                                "odd": junk,
                            },
                        )
                    ),
                    "odd": junk,
                },
            )
        ),
        "planner": mostly(st.dictionaries(text, junk, max_size=2)),
        "engine": junk,
    },
)


@cache
def bodies(resource: Resource) -> Strategy:
    """Spec and status of a kind in one version."""
    properties = schema_of(resource)["properties"]
    status = {"status": _values(properties["status"], "status")} if "status" in properties else {}
    return objects({"spec": _values(properties["spec"], "spec")}, status)


ANNOTATIONS = st.sampled_from([None, {}, {"a": "b"}, {"nvidia.com/dgdr-config-map-ref": "{}", "c": ""}])


@cache
def manifests(resource: Resource) -> Strategy:
    """Whole objects of a kind in one version, with varied metadata."""

    def build(body: dict[str, Any], annotations: Any, labels: Any) -> dict[str, Any]:
        metadata: dict[str, Any] = {"name": "name", "namespace": "ns", "uid": "1", "managedFields": [{"manager": "m"}]}
        if annotations is not None:
            metadata["annotations"] = dict(annotations)
        if labels is not None:
            metadata["labels"] = labels
        return {**resource.type_meta, "metadata": metadata, **body}

    return st.builds(build, bodies(resource), ANNOTATIONS, st.sampled_from([None, {"l": "v"}]))


def _values(schema: dict[str, Any], field: str) -> Strategy:
    strategy = _plain(schema, field)
    for validation in schema.get("x-kubernetes-validations", ()):
        strategy = strategy.filter(partial(_keeps, rule_of(validation["rule"])))
    return strategy


def _keeps(rule: CelRule, value: Any) -> bool:
    return not list(rule.violations(value))


def _plain(schema: dict[str, Any], field: str) -> Strategy:
    marker = schema.get("x-dynamo-embedded")
    if marker:
        own = {name: _values(each, name) for name, each in schema.get("properties", {}).items()}
        embedded = EMBEDDED[marker["type"]]
        extra = objects({}, own, most=2)
        return st.builds(lambda base, more: {**base, **more}, embedded, extra) if own else embedded
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if schema.get("x-kubernetes-int-or-string"):
        return amount
    kind = schema.get("type")
    if kind == "object" or "properties" in schema:
        return _object(schema, field)
    if kind == "array":
        return _array(schema, field)
    if kind == "string":
        # v1alpha1 allows it to be empty; admission does not.
        return _text({**schema, "minLength": 1} if field == "model" else schema)
    if kind == "boolean":
        return st.booleans()
    if kind == "integer":
        low, high = schema.get("minimum", -2), schema.get("maximum", 5)
        return st.integers(low, max(low, high)) | st.just(schema.get("default", low))
    if kind == "number":
        return st.sampled_from([0, 1, 2.5, 80000])
    return junk


def _object(schema: dict[str, Any], field: str) -> Strategy:
    properties, required = schema.get("properties", {}), schema.get("required", ())
    values = {name: _values(each, name) for name, each in properties.items()}
    if values:
        most = 7 if "mainContainer" in values or "podTemplate" in values or "extraPodSpec" in values else 5
        return objects(
            {name: values[name] for name in required},
            {name: each for name, each in values.items() if name not in required},
            most,
        )
    others = schema.get("additionalProperties")
    if isinstance(others, dict):
        keys = st.sampled_from(NAMES) if field in ("services", "components") else st.sampled_from(["cpu", "a", "x.y/z"])
        maps = st.dictionaries(keys, _values(others, ""), max_size=3)
        return maps.filter(_at_most_one_picker) if field == "services" else maps
    if field == "config":
        return profiling
    return (
        st.dictionaries(text, junk, max_size=2) if schema.get("x-kubernetes-preserve-unknown-fields") else st.just({})
    )


def _array(schema: dict[str, Any], field: str) -> Strategy:
    items = schema["items"]
    keys = schema.get("x-kubernetes-list-map-keys")
    if keys:
        (key,) = keys
        return lists(_values(items, field), unique_by=lambda item: item[key])
    return lists(_values(items, field))


def _text(schema: dict[str, Any]) -> Strategy:
    if schema.get("format") == "date-time":
        return st.just("2026-05-01T10:00:00Z")
    low, high = schema.get("minLength", 0), schema.get("maxLength", 1000)
    pattern = re.compile(schema.get("pattern", ""))
    fitting = [
        word for word in (*WORDS, *NAMES, *map(str, AMOUNTS)) if low <= len(word) <= high and pattern.search(word)
    ]
    return st.sampled_from(fitting)


def _at_most_one_picker(services: dict[str, Any]) -> bool:
    """As admission requires in both versions. The schema of v1beta1 has this rule, that of v1alpha1 cannot."""
    return sum(isinstance(each, dict) and each.get("componentType") == "epp" for each in services.values()) <= 1
