"""Tags, images of tags, and when two builds are the same."""

import pytest
from dynamo_image_builder.builds import BentoTag, InvalidTag, parse_tag, target_of
from dynamo_shared.runtime.settings.image_builder import ImageBuilder
from pydantic import ValidationError

from .building import ARCHIVE, DIGEST, TAG, build, settings


def test_a_tag_is_a_name_and_a_version() -> None:
    assert parse_tag("frontend:jh2o6dqzpsgfued4") == TAG
    assert parse_tag("my-app.v2_x:1.0-RC1") == BentoTag("my-app.v2_x", "1.0-RC1")


@pytest.mark.parametrize(
    "text",
    ["", "frontend", "frontend:", ":v", "Frontend:v", "a/b:v", "a:b:c", "a:../../x", "a:v ", "-a:v", "a" * 64 + ":v"],
)
def test_an_invalid_tag_is_rejected_with_the_allowed_form(text: str) -> None:
    with pytest.raises(InvalidTag, match=r"spec\.bentoTag: '.*' is not a tag: write name:version"):
        parse_tag(text)


@pytest.mark.parametrize(
    ("given", "push", "pull"),
    [
        ({}, "registry.example.com/team/yatai-bentos", "registry.example.com/team/yatai-bentos"),
        ({"registry": {"server": "r:5000/", "repository": "a/b"}}, "r:5000/a/b", "r:5000/a/b"),
        (
            {"registry": {"server": "r.example.com", "inClusterServer": "registry.svc:5000"}},
            "registry.svc:5000/yatai-bentos",
            "r.example.com/yatai-bentos",
        ),
    ],
)
def test_an_image_is_pushed_to_the_registry_address_for_builds(
    given: dict[str, dict[str, str]], push: str, pull: str
) -> None:
    target = target_of(TAG, "ns", settings(**given))
    name = "yatai.frontend.jh2o6dqzpsgfued4"
    assert (target.push, target.pull) == (f"{push}:{name}", f"{pull}:{name}")


def test_the_namespace_and_estargz_are_in_the_tag_on_request() -> None:
    target = target_of(TAG, "team-a", settings(addNamespacePrefix=True, estargz=True))
    assert target.pull.endswith(":yatai.team-a.frontend.jh2o6dqzpsgfued4.esgz")


def test_a_too_long_tag_is_shortened_with_a_hash_and_stays_unique() -> None:
    wide = settings(addNamespacePrefix=True)
    tags = {target_of(BentoTag("n" * 63, end * 63), "s" * 63, wide).pull.rpartition(":")[2] for end in "ab"}
    assert len(tags) == 2
    assert all(len(tag) <= 128 for tag in tags)


def test_equal_tag_archive_and_image_are_one_build() -> None:
    assert build().id == build().id
    others = [
        build(archive=f"sha256:{'2f' * 32}"),
        build(settings(addNamespacePrefix=True)),
        build(settings(estargz=True)),
        build(settings(registry={"repository": "other"})),
    ]
    assert len({each.id for each in (build(), *others)}) == 5
    # Without the prefix, namespaces share images and therefore builds.
    assert build(namespace="a").id == build(namespace="b").id
    assert build().archive_digest == ARCHIVE
    assert build().image_ref(DIGEST).endswith(f"yatai.frontend.jh2o6dqzpsgfued4@{DIGEST}")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"engine": "kaniko"}, "'buildkit' or 'buildkit-rootless'"),
        ({"store": {"endpoint": "ftp://x"}}, "pattern"),
        ({"store": {"endpoint": "http://user:word@x"}}, "pattern"),
        ({"store": {"username": "u"}}, "username, passwordFile and secret must be set together"),
        ({"registry": {"server": "https://r"}}, "pattern"),
        ({"buildkit": {"url": "http://b"}}, "pattern"),
        ({"namespace": "A"}, "pattern"),
        ({"resources": {"limits": {"memory": "much"}}}, "is not a quantity"),
    ],
)
def test_settings_that_cannot_work_are_rejected(given: dict[str, object], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        ImageBuilder.model_validate(given)
