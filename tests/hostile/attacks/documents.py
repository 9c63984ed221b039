"""Documents in objects: PlannerConfigs, annotations, texts of requests, legacy configurations, pull secrets."""

import asyncio
import base64
import json
from collections.abc import Iterable
from typing import Any

from dynamo_shared.api import resources
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import annotations as names

from tests.hostile import texts
from tests.hostile.attack import attack, stored
from tests.hostile.objects import config_map, disaggregated, graph, obj, request
from tests.hostile.world import World

YAML = "YAML in ConfigMaps"
ANNOTATIONS = "YAML in annotations"
SECRETS = "pull secrets"
REQUESTS = "texts of requests"


def planned(namespace: str, text: str, name: str = "planned", **data: str) -> list[KubeObject]:
    """A graph that names a PlannerConfig, and its ConfigMap with that text."""
    return [
        config_map(namespace, f"{name}-config", {"planner_config.yaml": text, **data}),
        disaggregated(namespace, name, annotations={names.PLANNER_CONFIG: f"{name}-config"}),
    ]


def _planner(name: str, does: str, text: str, **more: Any) -> None:
    stored(f"planner-config-{name}", YAML, does, lambda ns: planned(ns, text), linger=3.0, **more)


_planner("alias-bomb", "a PlannerConfig of 440 bytes that expands to billions of values", texts.alias_bomb())
_planner("alias-bomb-mode", "an alias bomb as the value of a field with an enum", texts.alias_bomb_at("mode"))
_planner("alias-bomb-number", "an alias bomb as the value of a number", texts.alias_bomb_at("ttft"))
_planner("alias-bomb-list", "an alias bomb that is not an object", f"[{texts.alias_bomb().replace(chr(10), ', ')}]")
_planner("alias-bomb-deep", "the same with 30 levels", texts.alias_bomb(30, 9))
_planner("self-alias", "a PlannerConfig that contains itself", texts.self_alias())
_planner("merges", "a PlannerConfig of merge keys", texts.merge_chain())
_planner("merges-1m", "900 KB of merges", texts.merge_chain(900_000))
_planner("list-1m", "a PlannerConfig of 900 KB of small values", texts.plain_list(900_000))
_planner("map-1m", "a PlannerConfig of 900 KB of keys", texts.plain_map(900_000))
_planner("nested", "a PlannerConfig nested 400,000 deep", texts.nested(400_000))
_planner("blocks", "a PlannerConfig of block sequences nested 200,000 deep", texts.block_nested(200_000))
_planner("documents", "a PlannerConfig of 200,000 documents", "---\n" * 200_000)
_planner(
    "numbers",
    "a PlannerConfig whose numbers are not numbers",
    "throughput_adjustment_interval_seconds: 1e400\nttft: .nan\n",
)
_planner("long-number", "an integer of 900,000 digits", f"ttft: {'9' * 900_000}\n")
_planner("sexagesimal", "a number of base 60 with 100,000 places", f"ttft: {'1:' * 100_000}1\n")
_planner(
    "python",
    "YAML tags that would build Python objects",
    "!!python/object/apply:os.system ['touch /tmp/dynamo-hostile']",
)
_planner(
    "huge-intervals",
    "intervals of 10^300 seconds",
    "throughput_adjustment_interval_seconds: 1.0e+300\nload_adjustment_interval_seconds: 1.0e+300\n",
)
_planner("tiny-intervals", "an interval of 10^-9 seconds", "throughput_adjustment_interval_seconds: 0.000000001\n")


_WARMED = "load_predictor: arima\nload_predictor_warmup_trace: trace.jsonl\n"


def _trace(name: str, does: str, lines: Iterable[str]) -> None:
    text = "\n".join(lines)[:900_000]
    stored(f"warm-up-{name}", YAML, does, lambda ns: planned(ns, _WARMED, **{"trace.jsonl": text}), linger=3.0)


_trace(
    "numbers",
    "a warm-up trace whose times are 10^300 apart",
    (f'{{"timestamp": 1e{n}, "input_length": 1}}' for n in range(300)),
)
_trace("nan", "a warm-up trace of NaN", ('{"timestamp": NaN, "input_length": Infinity}' for _ in range(20_000)))
_trace("deep", "a warm-up trace of brackets", (texts.nested(40_000) for _ in range(10)))
_trace(
    "backwards",
    "a warm-up trace whose times run backwards from far away",
    (json.dumps({"timestamp": 10**15 - n * 10**9, "input_length": 10, "output_length": 1}) for n in range(12_000)),
)
_trace(
    "spread",
    "a warm-up trace of two moments that are 30,000 years apart",
    (json.dumps({"timestamp": n, "input_length": 10, "output_length": 1}) for n in (0, 10**15)),
)

_PROFILES = {
    "deep": texts.nested(400_000),
    "nan": json.dumps({"prefill_isl": ["NaN"] * 10_000, "prefill_ttft": [1e308] * 10_000}),
    "wide": json.dumps({"prefill_isl": list(range(60_000)), "prefill_ttft": list(range(60_000))}),
    "flat": json.dumps({"x_kv_usage": [0.5] * 30_000, "y_context_length": [1] * 30_000, "z_itl": [0] * 30_000}),
}
for _name, _text in _PROFILES.items():
    stored(
        f"profile-{_name}",
        YAML,
        f"a profile of a planned graph: {_name}",
        lambda ns, text=_text: [  # type: ignore[misc]
            config_map(
                ns,
                "planner-profile-data-planned-config",
                {"prefill_raw_data.json": text, "decode_raw_data.json": text},
                labels={"dgdr.nvidia.com/name": "x"},
            ),
            *planned(ns, "mode: disagg\n"),
        ],
        linger=3.0,
    )


def _annotated(name: str, annotation: str, text: str, does: str, **more: Any) -> None:
    stored(name, ANNOTATIONS, does, lambda ns: [graph(ns, "annotated", annotations={annotation: text})], **more)


for _short, _annotation in (("autoscaling", names.AUTOSCALING), ("scaling-policy", names.SCALING_POLICY)):
    _annotated(f"{_short}-alias-bomb", _annotation, texts.alias_bomb(), f"an alias bomb in {_annotation}")
    _annotated(f"{_short}-list-64k", _annotation, texts.plain_list(64_000), f"64 KB of small values in {_annotation}")
    _annotated(f"{_short}-merges-91k", _annotation, texts.merge_chain(91_000), f"91 KB of merges in {_annotation}")
    _annotated(f"{_short}-map-250k", _annotation, texts.plain_map(240_000), f"240 KB of keys in {_annotation}")
    _annotated(f"{_short}-nested", _annotation, texts.nested(100_000), f"brackets by the thousand in {_annotation}")
_annotated(
    "scaling-policy-durations",
    names.SCALING_POLICY,
    json.dumps({"*": {"up": {"cooldown": "9" * 300 + "h"}, "down": {"cooldown": "1h" * 20_000}}}),
    "cool-downs of 10^300 hours",
)
for _short, _annotation in (
    ("intents", names.SCALING_INTENTS),
    ("last-scaled", names.LAST_SCALED),
    ("origin-version", names.OPERATOR_ORIGIN_VERSION),
    ("worker-hash", names.CURRENT_WORKER_HASH_V2),
):
    for _kind, _text in (
        ("deep", texts.nested(100_000)),
        ("digits", "9" * 200_000),
        ("map", json.dumps({f"c{n}": {"at": "9999-12-31T23:59:59Z", "replicas": 10**300} for n in range(3000)})),
    ):
        _annotated(f"{_short}-{_kind}", _annotation, _text, f"{_annotation} forged: {_kind}")


@attack("review-storm", ANNOTATIONS, "20 dry runs at once, each with 250 KB of YAML in an annotation", linger=0.0)
async def _review_storm(world: World) -> None:
    text = texts.plain_map(240_000)
    for resource in (resources.DYNAMO_GRAPH_DEPLOYMENTS, resources.DYNAMO_GRAPH_DEPLOYMENTS):
        body = graph(world.namespace, "dry", annotations={names.AUTOSCALING: text})
        for answer in await _together(world, [("POST", f"{resource.path(world.namespace)}?dryRun=All", body)] * 10):
            world.note(answer)


async def _together(world: World, requests: list[tuple[str, str, Any]]) -> list[Any]:
    return await asyncio.gather(*(world.tenant.request(*each) for each in requests))


def _preserved(name: str, value: str, does: str) -> None:
    annotations = {names.PRESERVED_FIELDS: value}
    stored(f"preserved-{name}", "packed fields", does, lambda ns: [graph(ns, "preserved", annotations=annotations)])


_preserved("bomb", texts.packed_bomb(), "packed fields that decompress to half a gibibyte")
_preserved("deep", texts.nested(100_000), "packed fields that are nested 100,000 deep")
_preserved(
    "many",
    texts.packed({"version": 1, "for": "v1alpha1", "fields": [[["a"] * 50, 1]] * 60_000, "components": {}}),
    "packed fields of 60,000 pieces",
)
_preserved(
    "pieces",
    texts.packed({"version": 1, "for": "v1alpha1", "fields": [[["spec", n], {"x": n}] for n in range(100_000)]}),
    "packed fields that point into missing lists",
)


def _pull_secret(ns: str, name: str, auths: dict[str, Any]) -> KubeObject:
    content = base64.b64encode(json.dumps({"auths": auths}).encode()).decode()
    return obj(resources.SECRETS, ns, name, type="kubernetes.io/dockerconfigjson", data={".dockerconfigjson": content})


stored(
    "pull-secret-malformed-5000",
    SECRETS,
    "a pull secret with 5,000 malformed registries",
    lambda ns: [_pull_secret(ns, "pull", {f"http://u:p@[bad{n}": {} for n in range(5000)}), graph(ns, "pulls")],
    linger=3.0,
)
stored(
    "pull-secret-malformed-20000",
    SECRETS,
    "a pull secret with 20,000 malformed registries",
    lambda ns: [_pull_secret(ns, "pull", {f"http://[{n}": {} for n in range(20_000)}), graph(ns, "pulls")],
    linger=5.0,
)
stored(
    "pull-secrets-300",
    SECRETS,
    "300 pull secrets of 100 registries each",
    lambda ns: [
        *(_pull_secret(ns, f"pull-{n}", {f"r{n}-{m}.example": {} for m in range(100)}) for n in range(300)),
        graph(ns, "pulls"),
    ],
    linger=3.0,
    slack=2.0,
)


async def _no_password(world: World) -> None:
    """The password in a registry's name occurs in no Event, status or log."""
    events = [
        event
        for event in await world.admin.list(resources.EVENTS, world.namespace)
        if "hunter2" in json.dumps(event.get("note", ""))
    ]
    assert not events, f"a password in an Event: {events[0].get('note', '')[:200]}"
    logs = [each.id for each in world.stage.services if "hunter2" in each.process.log.read_text(errors="replace")]
    assert not logs, f"a password in the log of {logs}"


stored(
    "pull-secret-password",
    "secrets in words",
    "a registry whose name contains a password",
    lambda ns: [
        _pull_secret(ns, "pull", {"https://bob:hunter2@registry.example:99999/x": {}, "u:hunter2@[": {}}),
        graph(ns, "pulls"),
    ],
    check=_no_password,
    must="no Event and no log contains the password",
    linger=3.0,
)

_OF_V1ALPHA1 = (names.DGDR_PROFILING_CONFIG, names.DGDR_DEPLOYMENT_OVERRIDES)
_REQUEST_TEXTS: dict[str, dict[str, Any]] = {
    "annotations-deep": {"annotations": dict.fromkeys(_OF_V1ALPHA1, texts.nested(100_000))},
    "annotations-bomb": {"annotations": dict.fromkeys(_OF_V1ALPHA1, texts.alias_bomb())},
    "long-model": {"spec": {"model": "a/" + "b" * 200_000}},
    "path-model": {"spec": {"model": "../../../../etc/passwd"}},
    "nul-model": {"spec": {"model": "a/b\u0000c"}},
    "huge-lengths": {"spec": {"workload": {"isl": 2**31 - 1, "osl": 2**31 - 1}}},
    "huge-gpus": {"spec": {"hardware": {"gpuSku": "h200_sxm", "totalGpus": 2**31 - 1, "numGpusPerNode": 1}}},
    "zero-sla": {"spec": {"sla": {"ttft": 1e-300, "itl": 1e-300}}},
    "huge-sla": {"spec": {"sla": {"ttft": 1e300, "itl": 1e300}}},
    "unknown-gpu": {"spec": {"hardware": {"gpuSku": "x" * 5000, "totalGpus": 8}}},
    "overrides": {"spec": {"overrides": {"dgd": {"spec": {"components": [{"name": "x" * 1000}] * 500}}}}},
}
for _name, _fields in _REQUEST_TEXTS.items():
    stored(
        f"request-{_name}",
        REQUESTS,
        f"a DynamoGraphDeploymentRequest: {_name}",
        lambda ns, fields=_fields: [request(ns, "asks", **fields)],  # type: ignore[misc]
        linger=3.0,
        # A simulation is a separate process; the planner itself needs little for it.
        slack=2.0,
    )
