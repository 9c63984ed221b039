"""Laws of conversion for every object: nothing is lost on a round trip."""

import copy
import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from dynamo_shared.api import resources
from dynamo_shared.api.conversion import component, component_lens, convert, graph, request, scaling_adapter
from dynamo_shared.api.manifest import schema_errors
from dynamo_shared.api.registry.annotations import PRESERVED_FIELDS
from dynamo_shared.api.resources import Resource
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.examples import examples

from .strategies import junk, manifests

KINDS = {
    "dgd": resources.DYNAMO_GRAPH_DEPLOYMENTS,
    "dcd": resources.DYNAMO_COMPONENT_DEPLOYMENTS,
    "dgdsa": resources.DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS,
    "dgdr": resources.DYNAMO_GRAPH_DEPLOYMENT_REQUESTS,
}
UNCHANGED = {each.plural: each for each in resources.UNCHANGED_IN_V1BETA1}
VERSIONS = (("v1alpha1", "v1beta1"), ("v1beta1", "v1alpha1"))


def both_ways(kinds: dict[str, Resource]) -> pytest.MarkDecorator:
    sides = [
        pytest.param(kind.at(version), kind.at(other), id=f"{name}-{version}")
        for name, kind in kinds.items()
        for version, other in VERSIONS
    ]
    return pytest.mark.parametrize(("here", "there"), sides)


def cases(count: int) -> settings:
    large = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]
    return examples(count, suppress_health_check=large)


def bare(obj: dict[str, Any]) -> dict[str, Any]:
    """An object without its preserved fields."""
    metadata = dict(obj["metadata"])
    annotations = {name: each for name, each in metadata.pop("annotations", {}).items() if name != PRESERVED_FIELDS}
    return {**obj, "metadata": {**metadata, "annotations": annotations}}


def components(obj: dict[str, Any]) -> dict[str, str]:
    """The components of a graph by name, as text."""
    spec = obj["spec"]
    named = spec.get("services") or {each["name"]: each for each in spec.get("components", ())}
    return {name: json.dumps(each, sort_keys=True) for name, each in named.items()}


def parts(obj: dict[str, Any]) -> Iterator[tuple[Callable[[dict[str, Any]], Any], Any]]:
    """Each part of an object that is converted separately, and how to find it in another object."""
    for name in components(obj):
        yield partial(_component, name), components(obj)[name]
    yield frame, frame(obj)


def _component(name: str, obj: dict[str, Any]) -> str | None:
    return components(obj).get(name)


def frame(obj: dict[str, Any]) -> dict[str, Any]:
    spec = {name: each for name, each in obj["spec"].items() if name not in ("services", "components")}
    return {"spec": spec, "status": obj.get("status")}


@both_ways(KINDS)
@cases(50)
@given(data=st.data())
def test_a_round_trip_preserves_the_object(here: Resource, there: Resource, data: st.DataObject) -> None:
    obj = data.draw(manifests(here))
    before = copy.deepcopy(obj)
    other = convert(obj, there.api_version)
    back = convert(other, here.api_version)
    assert back == before
    assert obj == before
    assert convert(back, there.api_version) == other
    valid = not schema_errors(obj, embedded=False)
    assert not valid or not [str(each) for each in schema_errors(other, embedded=False)]
    rest = {name: each for name, each in obj["metadata"].items() if name != "annotations"}
    assert {name: each for name, each in other["metadata"].items() if name != "annotations"} == rest


@both_ways(UNCHANGED)
@cases(20)
@given(data=st.data())
def test_a_kind_without_differences_changes_only_its_version(
    here: Resource, there: Resource, data: st.DataObject
) -> None:
    """The API server converts these without a webhook. A valid object stays valid."""
    obj = data.draw(manifests(here))
    other = convert(obj, there.api_version)
    assert other == {**obj, "apiVersion": there.api_version}
    assert bool(schema_errors(obj, embedded=False)) == bool(schema_errors(other, embedded=False))


@st.composite
def edited(draw: st.DrawFn, obj: dict[str, Any]) -> dict[str, Any]:
    """An object with one field changed or removed, or one list item moved."""
    places = list(_places(obj["spec"], ()))
    if not places:
        return obj
    path = draw(st.sampled_from(places))
    result = copy.deepcopy(obj)
    node: Any = result["spec"]
    for step in path[:-1]:
        node = node[step]
    value = node[path[-1]]
    change = draw(st.integers(0, 3))
    if change == 0:
        del node[path[-1]]
    elif isinstance(value, list) and len(value) > 1:
        value.reverse()
    elif isinstance(value, bool):
        node[path[-1]] = not value
    elif isinstance(value, str):
        node[path[-1]] = "decode" if value in ("worker", "prefill") else f"{value}x"
    elif isinstance(value, int | float):
        node[path[-1]] = value + 1
    elif isinstance(value, dict) and "name" not in value and path[-1] not in ("services", "podTemplate"):
        node[path[-1]] = {}
    return result


def _places(node: Any, path: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    if isinstance(node, dict):
        items: list[tuple[Any, Any]] = list(node.items())
    else:
        items = list(enumerate(node)) if isinstance(node, list) else []
    for key, value in items:
        if key != "name":
            yield (*path, key)
        yield from _places(value, (*path, key))


@both_ways(KINDS)
@cases(40)
@given(data=st.data())
def test_an_edit_in_the_other_version_survives(here: Resource, there: Resource, data: st.DataObject) -> None:
    """Whatever was preserved before: live fields win, and both versions are stable after one conversion."""
    obj = data.draw(manifests(here))
    before = convert(obj, there.api_version)
    other = data.draw(edited(before))
    back = convert(other, here.api_version)
    again = convert(back, there.api_version)
    assert bare(again) == bare(other)
    # Preserved fields of the other parts stay, and live fields are converted even without the annotation.
    same = components(before).items() & components(other).items()
    assert components(obj).items() >= {(name, components(back)[name]) for name, _ in same}
    shown = convert(bare(back), there.api_version)
    plain = convert(bare(convert(bare(other), here.api_version)), there.api_version)
    assert all(each in (of(plain), of(other)) for of, each in parts(shown))
    assert convert(again, here.api_version) == back
    assert convert(convert(again, here.api_version), there.api_version) == again


@both_ways(KINDS)
@cases(30)
@given(data=st.data())
def test_fields_that_only_one_version_has_are_preserved_together(
    here: Resource, there: Resource, data: st.DataObject
) -> None:
    """An object has fields of one version only, and a user adds fields of the other one only."""
    first = data.draw(manifests(here))
    other = convert(first, there.api_version)
    more = data.draw(manifests(there))
    other = {**other, "spec": _with_more(other["spec"], more["spec"])}
    back = convert(other, here.api_version)
    again = convert(back, there.api_version)
    assert bare(again) == bare(other)
    assert convert(again, here.api_version) == back


def _with_more(spec: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    """Fields of another spec where this one has none; components by position."""
    result = {**more, **spec}
    if isinstance(spec.get("components"), list):
        additions = more.get("components", [])
        result["components"] = [
            {**(additions[place] if place < len(additions) else {}), **each}
            for place, each in enumerate(spec["components"])
        ]
    if isinstance(spec.get("services"), dict):
        additions = list(more.get("services", {}).values())
        result["services"] = {
            name: {**(additions[place] if place < len(additions) else {}), **each}
            for place, (name, each) in enumerate(spec["services"].items())
        }
    return result


@both_ways({**KINDS, **UNCHANGED})
@cases(20)
@given(data=st.data())
def test_any_object_can_be_converted(here: Resource, there: Resource, data: st.DataObject) -> None:
    """Conversion fails for no JSON object, and loses nothing."""
    body = data.draw(st.dictionaries(st.sampled_from(["spec", "status", "data"]), junk | things, max_size=3))
    obj = {**here.type_meta, "metadata": {"name": "x"}, **body}
    other = convert(obj, there.api_version)
    assert convert(other, here.api_version) == obj
    assert other["apiVersion"] == there.api_version


FIELDS = [
    "spec",
    "status",
    "services",
    "components",
    "name",
    "podTemplate",
    "extraPodSpec",
    "mainContainer",
    "containers",
]
FIELDS += [
    "profilingConfig",
    "config",
    "sla",
    "overrides",
    "profilingJob",
    "template",
    "resources",
    "limits",
    "env",
    "envs",
]
things = st.recursive(
    st.sampled_from([None, True, 0, "", "main", "prefill"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=3),
    max_leaves=8,
)
LENSES = {
    "component": (component.to_beta, component.to_alpha, KINDS["dcd"], "spec"),
    "graph": (graph.frame_to_beta, graph.frame_to_alpha, KINDS["dgd"], ""),
    "adapter": (scaling_adapter.to_beta, scaling_adapter.to_alpha, KINDS["dgdsa"], ""),
    "request": (request.to_beta, request.to_alpha, KINDS["dgdr"], ""),
}


@pytest.mark.parametrize("name", LENSES)
@cases(40)
@given(data=st.data())
def test_a_second_round_trip_changes_nothing(name: str, data: st.DataObject) -> None:
    """Lens law: the second conversion removes nothing more."""
    to_beta, to_alpha, resource, part = LENSES[name]
    for forward, backward, version in ((to_beta, to_alpha, "v1alpha1"), (to_alpha, to_beta, "v1beta1")):
        value = data.draw(manifests(resource.at(version)) | things)
        value = value.get(part, {}) if part and isinstance(value, dict) else value
        value = component_lens.marked(value) if name == "component" else value
        value = value if isinstance(value, dict) else {}
        once = forward(value)
        assert forward(backward(once)) == once
