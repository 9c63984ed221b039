"""Anything may have any type: rules skip what they cannot read, and say the same twice."""

from __future__ import annotations

import copy
import json
from typing import Any

from dynamo_shared.api.validation import Facts, validate
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.api.validation.test_rules import CASES

KINDS = ["DynamoGraphDeployment", "DynamoComponentDeployment", "DynamoGraphDeploymentRequest", "DynamoModel"]
JUNK = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**63), 2**63),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(max_size=8),
        st.sampled_from(["epp", "worker", "1", "interPod", "InterPod", "vllm", "", "Profiling"]),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=6), inner, max_size=3)),
    max_leaves=6,
)
FACTS = st.builds(
    Facts,
    user=st.sampled_from(["", "jane", "system:serviceaccount::planner-serviceaccount"]),
    grove=st.sampled_from([None, False, True]),
    inference_pools=st.sampled_from([None, False, True]),
    cluster_wide=st.booleans(),
    gpu_discovery=st.booleans(),
    topologies=st.sampled_from([None, {}, {"dc": ("zone", "rack")}]),
)
MANIFESTS = [each for case in CASES for each in (case.obj, case.old) if each is not None]


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Every container with every key or index in it."""
    found: list[tuple[Any, Any]] = []
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        found.append((value, key))
        found.extend(_places(child))
    return found


@st.composite
def broken(draw: st.DrawFn) -> dict[str, Any]:
    """A manifest of the cases with junk in one to three places."""
    manifest: dict[str, Any] = copy.deepcopy(draw(st.sampled_from(MANIFESTS)))
    for _ in range(draw(st.integers(1, 3))):
        places = [place for place in _places(manifest) if place[1] not in ("apiVersion", "kind")]
        holder, key = draw(st.sampled_from(places))
        holder[key] = draw(JUNK)
    return manifest


@settings(max_examples=1500, deadline=None)
@given(obj=broken(), old=st.none() | broken(), facts=FACTS)
def test_junk_is_never_raised_upon(obj: dict[str, Any], old: dict[str, Any] | None, facts: Facts) -> None:
    before = json.dumps([obj, old])
    found = validate(obj, old, facts)
    assert json.dumps([obj, old]) == before
    assert all(error.path and error.message for error in found.errors)
    assert validate(copy.deepcopy(obj), copy.deepcopy(old), facts) == found


@settings(max_examples=500, deadline=None)
@given(
    kind=st.sampled_from(KINDS) | JUNK,
    version=st.sampled_from(["nvidia.com/v1alpha1", "nvidia.com/v1beta1", "nvidia.com/v2"]) | JUNK,
    rest=st.dictionaries(st.sampled_from(["metadata", "spec", "status"]), JUNK),
    facts=FACTS,
)
def test_nothing_but_junk(kind: Any, version: Any, rest: dict[str, Any], facts: Facts) -> None:
    obj = {"kind": kind, "apiVersion": version, **rest}
    assert validate(obj, None, facts) == validate(obj, None, facts)
    validate(obj, obj, facts)
