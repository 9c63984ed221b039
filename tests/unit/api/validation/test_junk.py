"""Any field may have any type: rules ignore values of wrong types, and are deterministic."""

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from dynamo_shared.api.validation import Facts, validate
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from tests.unit.api.validation.junk import FACTS, JUNK, KINDS, broken


@examples(70)
@given(obj=broken(), old=st.none() | broken(), facts=FACTS)
def test_invalid_values_never_raise(obj: dict[str, Any], old: dict[str, Any] | None, facts: Facts) -> None:
    before = json.dumps([obj, old])
    result = validate(obj, old, facts)
    assert json.dumps([obj, old]) == before
    assert all(error.path and error.message for error in result.errors)
    assert validate(copy.deepcopy(obj), copy.deepcopy(old), facts) == result


@examples(30)
@given(
    kind=st.sampled_from(KINDS) | JUNK,
    version=st.sampled_from(["nvidia.com/v1alpha1", "nvidia.com/v1beta1", "nvidia.com/v2"]) | JUNK,
    rest=st.dictionaries(st.sampled_from(["metadata", "spec", "status"]), JUNK),
    facts=FACTS,
)
def test_objects_of_only_invalid_values_never_raise(
    kind: Any, version: Any, rest: dict[str, Any], facts: Facts
) -> None:
    obj = {"kind": kind, "apiVersion": version, **rest}
    assert validate(obj, None, facts) == validate(obj, None, facts)
    validate(obj, obj, facts)


@pytest.mark.parametrize("junk", [1, 1e308, True, {"a": 1}, [[1]]], ids=repr)
@pytest.mark.parametrize(
    ("kind", "version", "spec"),
    [
        ("DynamoGraphDeploymentRequest", "v1beta1", lambda junk: {"overrides": {"dgd": {"spec": junk}}}),
        (
            "DynamoGraphDeployment",
            "v1alpha1",
            lambda junk: {
                "services": {
                    "Epp": {
                        "componentType": "epp",
                        "extraPodSpec": {
                            "mainContainer": {"volumeMounts": [{"name": junk}]},
                            "volumes": [{"name": junk}],
                        },
                    }
                }
            },
        ),
    ],
    ids=["override", "mount of a picker"],
)
def test_small_objects_with_invalid_values_never_raise(
    kind: str, version: str, spec: Callable[[Any], Any], junk: Any
) -> None:
    obj = {"apiVersion": f"nvidia.com/{version}", "kind": kind, "metadata": {"name": "a"}, "spec": spec(junk)}
    assert validate(obj, None, Facts()) == validate(obj, None, Facts())
