"""Valid manifests of every kind and version, and mutations as typing errors, broken tools or attackers cause them."""

import copy
import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

from dynamo_shared.api.conversion import convert
from dynamo_shared.api.crds.kinds import DEFINITIONS
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry.annotations import PRESERVED_FIELDS
from dynamo_shared.api.untrusted.yaml_text import documents

from tests.benchmarks import reviews

from .case import load

Place = tuple[Any, Any]
"""A dict or list, and a key or index of it."""

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
RECORDED = ROOT.parent / "shared" / "conformance"
#: The reference's own annotations of this sort, which stored objects still have.
OLDER_ANNOTATIONS = ("nvidia.com/dgd-spec", "nvidia.com/dcd-spec", "nvidia.com/dgdr-spec", "nvidia.com/dgd-status")

#: A placeholder for this many levels of nesting.
_DEEP = "@deep-{}@"
_DEEP_WORD = re.compile(r'"@deep-([0-9]+)@"')
_SCALARS: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2**31, -(2**31) - 1, 2**63, 2**64, 10**400, -0.0, 1.5, 1e308, 5e-324),
    *(
        "",
        " ",
        "x",
        "0",
        "-1",
        "1e400",
        "8Gi",
        "\u0000",
        "\u202e",
        "𝔘𝔫𝔦𝔠𝔬𝔡𝔢",
        "é",
        "🦕" * 50,
        "a" * 70_000,
        "{}",
        "[]",
        "null",
    ),
    *("a/b/c/d", "../../etc", "nvidia.com/gpu", "*", "$(A)", "{{ .x }}", "%s%n", "true", "frontend", "epp", "interPod"),
)


def seeds() -> list[KubeObject]:
    """Manifests to mutate, in both versions if the kind has two; every run gets the same list."""
    results = [reviews.graph(), *_of_cases()]
    for path in sorted(EXAMPLES.rglob("*.yaml")):
        results += documents(path.read_text(encoding="utf-8"))
    for path in sorted(RECORDED.glob("*/*/*.json"))[::10]:
        results += json.loads(path.read_text(encoding="utf-8")).get("input", [])
    own = [each for each in results if str(each.get("apiVersion", "")).startswith("nvidia.com/")]
    return [each for one in own for each in _both_versions(one)]


def _of_cases() -> Iterator[KubeObject]:
    """Objects before an update, which are valid; for kinds without updates, objects that are rejected for a detail."""
    observed: set[tuple[str, str]] = set()
    for case in load():
        if case.before is not None:
            observed.add((case.before["apiVersion"], case.before["kind"]))
            yield {**case.before, **({"status": case.status} if case.status else {})}
    for case in load():
        if case.manifest and (case.manifest["apiVersion"], case.manifest["kind"]) not in observed:
            yield case.manifest


def _both_versions(obj: KubeObject) -> Iterator[KubeObject]:
    yield obj
    for definition in DEFINITIONS:
        if definition.kind == obj["kind"]:
            for version in definition.versions:
                if version.resource.api_version != obj["apiVersion"] and len(definition.versions) > 1:
                    yield convert(obj, version.resource.api_version)


def mutated(seed: KubeObject, others: Sequence[KubeObject], random: Random) -> KubeObject:
    """The manifest after one to four random mutations."""
    obj = copy.deepcopy(seed)
    for _ in range(random.choice((1, 1, 1, 2, 3, 4))):
        random.choice(_MUTATIONS)(obj, others, random)
    return obj


def text_of(obj: Any) -> str:
    """JSON of a mutated object; writes nesting that is too deep for an encoder."""
    return _DEEP_WORD.sub(lambda each: _nested(int(each[1])), json.dumps(obj))


def _nested(levels: int) -> str:
    half = levels // 2
    return '[{"spec":' * half + "1" + "}]" * half


def _places(value: Any) -> list[Place]:
    """Every place below a value."""
    results: list[Place] = []
    pending = [value]
    while pending:
        current = pending.pop()
        keys: Sequence[Any] = list(current) if isinstance(current, dict) else range(len(current))
        for key in keys:
            results.append((current, key))
            if isinstance(current[key], dict | list):
                pending.append(current[key])
    return results


def _place(obj: KubeObject, random: Random) -> Place:
    return random.choice(_places(obj) or [(obj.setdefault("spec", {"x": 1}), "x")])


def _delete(obj: KubeObject, _others: Sequence[KubeObject], random: Random) -> None:
    holder, key = _place(obj, random)
    del holder[key]


def _duplicate(obj: KubeObject, _others: Sequence[KubeObject], random: Random) -> None:
    lists = [holder[key] for holder, key in _places(obj) if isinstance(holder[key], list) and holder[key]]
    if lists:
        chosen = random.choice(lists)
        chosen.extend(copy.deepcopy([random.choice(chosen)]) * random.choice((1, 1, 2, 120)))


def _retype(obj: KubeObject, _others: Sequence[KubeObject], random: Random) -> None:
    holder, key = _place(obj, random)
    value = holder[key]
    holder[key] = random.choice(([value], {"value": value}, json.dumps(value), str(value), len(str(value)), [], {}))


def _scalar(obj: KubeObject, _others: Sequence[KubeObject], random: Random) -> None:
    holder, key = _place(obj, random)
    holder[key] = random.choice(_SCALARS)


def _rename(obj: KubeObject, _others: Sequence[KubeObject], random: Random) -> None:
    places = [(holder, key) for holder, key in _places(obj) if isinstance(holder, dict)]
    if not places:
        return
    holder, key = random.choice(places)
    slip = random.choice(
        (str.upper, str.lower, lambda word: word[:-1], lambda word: word + "s", lambda word: f"{word} ")
    )
    holder[slip(key) if random.random() < 0.8 else random.choice(("", "\u0000", "a.b/c", "é" * 40, "__proto__"))] = (
        holder.pop(key)
    )


def _swap(obj: KubeObject, others: Sequence[KubeObject], random: Random) -> None:
    holder, key = _place(obj, random)
    other_holder, other_key = _place(copy.deepcopy(random.choice([obj, *others[:200]])), random)
    holder[key] = copy.deepcopy(other_holder[other_key])


def _nest(obj: KubeObject, _others: Sequence[KubeObject], random: Random) -> None:
    holder, key = _place(obj, random)
    holder[key] = _DEEP.format(random.choice((3, 30, 150, 400, 900, 5000, 50_000)))


def _many(obj: KubeObject, _others: Sequence[KubeObject], random: Random) -> None:
    holder, key = _place(obj, random)
    count = random.choice((26, 101, 2000))
    holder[key] = random.choice(({f"k{n}": n for n in range(count)}, list(range(count)), [{"name": "n"}] * count))


def _version(obj: KubeObject, _others: Sequence[KubeObject], random: Random) -> None:
    obj["apiVersion"] = random.choice(("nvidia.com/v1alpha1", "nvidia.com/v1beta1", "nvidia.com/v1", "v1", "", 1, None))


def _kind(obj: KubeObject, _others: Sequence[KubeObject], random: Random) -> None:
    obj["kind"] = random.choice((*(definition.kind for definition in DEFINITIONS), "Pod", "", "dgd", 7, None, []))


def _half_converted(obj: KubeObject, others: Sequence[KubeObject], random: Random) -> None:
    """Fields of both versions in one object."""
    same = [
        other for other in others if other["kind"] == obj.get("kind") and other["apiVersion"] != obj.get("apiVersion")
    ]
    spec, other = obj.get("spec"), random.choice(same) if same else {}
    if isinstance(spec, dict) and isinstance(other.get("spec"), dict):
        for name in random.sample(sorted(other["spec"]), min(2, len(other["spec"]))):
            spec[name] = copy.deepcopy(other["spec"][name])


def _preserved(obj: KubeObject, others: Sequence[KubeObject], random: Random) -> None:
    """An annotation with fields that the other version cannot express, damaged or of another object."""
    if not isinstance(obj.get("metadata"), dict):
        obj["metadata"] = {"name": "graph"}
    annotations = obj["metadata"].get("annotations")
    if not isinstance(annotations, dict):
        annotations = obj["metadata"]["annotations"] = {}
    name = random.choice((PRESERVED_FIELDS, PRESERVED_FIELDS, *OLDER_ANNOTATIONS))
    kept = [
        value
        for other in others
        if isinstance(other.get("metadata"), dict)
        for key, value in (other["metadata"].get("annotations") or {}).items()
        if key == PRESERVED_FIELDS
    ]
    present = annotations.get(name) or random.choice(kept or ["{}"])
    if not isinstance(present, str):
        present = "{}"
    cut = random.randrange(len(present) + 1)
    annotations[name] = random.choice(
        (
            present,
            present[:cut],
            present[:cut] + "}" + present[cut:],
            "",
            "null",
            "[]",
            "{}",
            '{"version":99}',
            "[" * 2000,
            7,
        )
    )
    if random.random() < 0.5:
        try:
            content = json.loads(annotations[name])
            if isinstance(content, dict) and content:
                _scalar(content, others, random)
                annotations[name] = json.dumps(content)
        except (TypeError, ValueError, RecursionError):
            return


_Mutation = Callable[[KubeObject, Sequence[KubeObject], Random], None]
_MUTATIONS: tuple[_Mutation, ...] = (
    *(_delete, _duplicate, _retype, _scalar, _scalar, _rename, _swap, _nest, _many),
    *(_version, _kind, _half_converted, _preserved, _preserved),
)
