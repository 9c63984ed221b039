"""The runtime version: the author's override, or else the tag of the image. Precedence is as semver.org gives it."""

import itertools
import re

import pytest
from dynamo_shared.api import semver
from dynamo_shared.api.runtime_version import PATTERN, RuntimeFeatures, features_of, runtime_version


@pytest.mark.parametrize(
    ("image", "version"),
    [
        ("nvcr.io/nvidia/ai-dynamo/vllm-runtime:1.4.2", "1.4.2"),
        ("registry:5000/vllm-runtime:v1.5.0", "1.5.0"),
        ("vllm-runtime:V1.5.0", "1.5.0"),
        ("vllm-runtime:1.5.0-rc.1", "1.5.0"),
        ("vllm-runtime:1.5.0-cuda13", "1.5.0"),
        ("vllm-runtime:1.5.0@sha256:0123", "1.5.0"),
        (" vllm-runtime:1.5.0 ", "1.5.0"),
        ("vllm-runtime:latest", None),
        ("vllm-runtime:1.5", None),
        ("vllm-runtime:1.5.0.post1", None),
        ("vllm-runtime@sha256:0123", None),
        ("registry:5000/vllm-runtime", None),
        ("vllm-runtime", None),
        ("", None),
    ],
)
def test_the_tag_of_an_image(image: str, version: str | None) -> None:
    result = runtime_version(image)
    assert (str(result) if result else None) == version


@pytest.mark.parametrize("image", ["engine:1.4.0", "engine:latest", "engine"])
def test_the_override_wins(image: str) -> None:
    assert runtime_version(image, "1.5.1") == (1, 5, 1)
    assert runtime_version(image, "") == runtime_version(image)


_OF_1_5 = RuntimeFeatures(canary=True, lenient=True, compilers=True, ray_head=True, rank_telemetry=True)
_OF_1_6 = _OF_1_5._replace(
    ray_waits=True, topology_names=True, strict_prefix=True, embedding_canary=True, frontend_startup=True
)


@pytest.mark.parametrize(
    ("version", "features"),
    [("1.4.9", RuntimeFeatures()), ("1.5.0", _OF_1_5), ("1.6.0", _OF_1_6), ("1.10.0", _OF_1_6), ("2.0.0", _OF_1_6)],
)
def test_features_of_a_runtime(version: str, features: RuntimeFeatures) -> None:
    assert features_of(version) == features


def test_an_unknown_runtime_counts_as_an_earlier_one() -> None:
    assert features_of(None) == RuntimeFeatures()


@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        ("0.0.0", True),
        ("9999.9999.9999", True),
        ("10000.0.0", False),
        ("1.5", False),
        ("v1.5.0", False),
        ("1.5.0-rc.1", False),
        ("1.05.0", False),
        ("", False),
    ],
)
def test_valid_overrides(text: str, *, allowed: bool) -> None:
    assert bool(re.search(PATTERN, text)) is allowed


ASCENDING = [
    "0.9.9",
    "1.0.0-0",
    "1.0.0-alpha",
    "1.0.0-alpha.1",
    "1.0.0-alpha.beta",
    "1.0.0-beta",
    "1.0.0-beta.2",
    "1.0.0-beta.11",
    "1.0.0-rc.1",
    "1.0.0",
    "1.0.1",
    "1.1.0",
    "1.10.0",
    "2.0.0-rc.1",
]


@pytest.mark.parametrize(("lower", "higher"), [*itertools.combinations(ASCENDING, 2)])
def test_order(lower: str, higher: str) -> None:
    assert semver.at_least(higher, lower)
    assert not semver.at_least(lower, higher)


def test_build_metadata_and_a_leading_v_do_not_count() -> None:
    assert semver.parse("v1.2.3+build.5") == semver.parse("1.2.3")


@pytest.mark.parametrize("text", [None, "", "1", "1.2", "latest", "1.2.x", "01.0.0", "1.0.0-", "1.0.0\n", "1" * 300])
def test_an_invalid_version_is_never_new_enough(text: str | None) -> None:
    assert semver.parse(text or "") is None
    assert not semver.at_least(text, "0.0.0")


def test_a_gate_must_name_a_version() -> None:
    with pytest.raises(ValueError, match="is not a semantic version"):
        semver.at_least("1.0.0", "one")
