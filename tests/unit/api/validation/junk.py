"""Manifests with random values of any type in random places."""

import copy
from typing import Any

from dynamo_shared.api.validation import Facts
from hypothesis import strategies as st

from .cases import CASES

KINDS = ["DynamoGraphDeployment", "DynamoComponentDeployment", "DynamoGraphDeploymentRequest", "DynamoModel"]
JUNK = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**63), 2**64 - 1),
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
    leader_worker_sets=st.sampled_from([None, False, True]),
    inference_pools=st.sampled_from([None, False, True]),
    cluster_wide=st.booleans(),
    gpu_discovery=st.booleans(),
    topologies=st.sampled_from([None, {}, {"dc": ("zone", "rack")}]),
)
MANIFESTS = [each for case in CASES for each in (case.obj, case.old) if each is not None]


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Every object and list, with each of its keys or indexes."""
    results: list[tuple[Any, Any]] = []
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        results.append((value, key))
        results.extend(_places(child))
    return results


@st.composite
def broken(draw: st.DrawFn) -> dict[str, Any]:
    """A manifest of the cases with random values in one to three places."""
    manifest: dict[str, Any] = copy.deepcopy(draw(st.sampled_from(MANIFESTS)))
    for _ in range(draw(st.integers(1, 3))):
        places = [place for place in _places(manifest) if place[1] not in ("apiVersion", "kind")]
        holder, key = draw(st.sampled_from(places))
        holder[key] = draw(JUNK)
    return manifest
