"""The pull secrets of an image: registry hosts of image references and of docker configurations, as tables."""

import base64
import json
from fnmatch import fnmatchcase
from typing import Any

import pytest
from dynamo_pod_builder import render
from dynamo_pod_builder.render.access import pull_secrets
from dynamo_pod_builder.render.access.pull_secrets import (
    MOST_HOSTS,
    MOST_PATTERNS,
    Malformed,
    PullSecrets,
    host_of,
    host_of_key,
    index,
)
from dynamo_shared.api.objects import KubeObject

from . import building


def secret(name: str, *hosts: str, type_: str = "kubernetes.io/dockerconfigjson", **fields: Any) -> dict[str, Any]:
    entries = {host: {"auth": "dTpw"} for host in hosts}
    content = {"auths": entries} if type_.endswith("json") else entries
    key = ".dockerconfigjson" if type_.endswith("json") else ".dockercfg"
    return holding(name, json.dumps(content), type_=type_, key=key) | fields


def holding(name: str, content: str, *, type_: str = "kubernetes.io/dockerconfigjson", key: str = ".dockerconfigjson"):
    data = {key: base64.b64encode(content.encode()).decode()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "type": type_, "data": data}


@pytest.mark.parametrize(
    ("image", "host"),
    [
        ("busybox", "docker.io"),
        ("busybox:1", "docker.io"),
        ("org/img", "docker.io"),
        ("org/img:1@sha256:abc", "docker.io"),
        ("a/b/c", "docker.io"),
        ("docker.io/org/img", "docker.io"),
        ("index.docker.io/org/img", "docker.io"),
        ("registry-1.docker.io/org/img:2", "docker.io"),
        ("nvcr.io/nvidia/ai-dynamo/vllm-runtime:1.0.0", "nvcr.io"),
        ("NVCR.io/nvidia/x@sha256:abc", "nvcr.io"),
        ("registry.example.com:5000/team/img:1", "registry.example.com:5000"),
        ("localhost/img", "localhost"),
        ("localhost:5000/img", "localhost:5000"),
        ("registry:5000/img", "registry:5000"),
        ("[2001:db8::1]:5000/img", "[2001:db8::1]:5000"),
        # Without a slash, the part after the colon is a tag.
        ("localhost:5000", "docker.io"),
        # These only resemble hosts: a user name has no dot.
        ("nvcr/img", "docker.io"),
    ],
)
def test_the_registry_of_an_image(image, host) -> None:
    assert host_of(image) == host


@pytest.mark.parametrize(
    ("key", "host"),
    [
        ("https://index.docker.io/v1/", "docker.io"),
        ("index.docker.io", "docker.io"),
        ("https://registry-1.docker.io", "docker.io"),
        ("docker.io", "docker.io"),
        ("nvcr.io", "nvcr.io"),
        ("https://nvcr.io/v2/", "nvcr.io"),
        ("http://registry.example.com:5000", "registry.example.com:5000"),
        ("registry.gitlab.com/team/project", "registry.gitlab.com"),
        (" NVCR.IO ", "nvcr.io"),
        ("*.example.com", "*.example.com"),
        ("", ""),
    ],
)
def test_the_registry_of_a_docker_configuration_key(key, host) -> None:
    assert host_of_key(key) == host


def test_both_types_are_read_and_secrets_of_one_registry_are_sorted() -> None:
    result, malformed = index(
        [
            secret("b", "nvcr.io"),
            secret("old", "https://index.docker.io/v1/", type_="kubernetes.io/dockercfg"),
            secret("a", "nvcr.io", "quay.io"),
            secret("other", "nvcr.io") | {"type": "Opaque"},
        ]
    )
    assert result == PullSecrets({"docker.io": ("old",), "nvcr.io": ("a", "b"), "quay.io": ("a",)})
    assert malformed == ()
    assert result.of_hosts({"nvcr.io", "docker.io"}) == {"a", "b", "old"}
    assert result.of_hosts({"ghcr.io"}) == set()


@pytest.mark.parametrize(
    ("host", "image", "matches"),
    [
        ("*.example.com", "eu.example.com/x", True),
        ("*.example.com", "example.com/x", False),
        ("*.example.com", "a.b.example.com/x", False),
        ("*.example.com", "eu.example.com:5000/x", False),
        ("*.example.com:5000", "eu.example.com:5000/x", True),
        ("*.dkr.ecr.*.amazonaws.com", "123.dkr.ecr.eu-west-1.amazonaws.com/x", True),
        ("nvcr.io", "nvcr.io:443/x", False),
        ("*.*", "org/x", True),
        ("*example.com", "a.example.com/x", False),
        ("r*.*.io", "r1.eu.io/x", True),
        ("r*.eu.io", "r1.b.io/x", False),
        ("[ab].*.io", "b.eu.io/x", True),
        ("*.io", f"{'a' * 300}.io/x", False),
    ],
)
def test_a_key_may_match_many_hosts_as_in_the_kubelet(host, image, matches) -> None:
    result, _ = index([secret("s", host)])
    assert result.of_hosts({host_of(image)}) == ({"s"} if matches else set())


JSON = ".dockerconfigjson"
_WRONG = "{} of its {} entries do not map a registry to an object with credentials, or exceed the limit of registries"


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        (holding("bad", "{"), f"{JSON} is not JSON"),
        (holding("bad", "\x00"), f"{JSON} is not JSON"),
        (holding("bad", "[1]"), f"{JSON} is not a docker configuration: it must map registries to credentials"),
        (
            holding("bad", '{"auths": 1}'),
            f"{JSON} is not a docker configuration: it must map registries to credentials",
        ),
        (holding("bad", '{"auths": null}'), f'{JSON} has no "auths"'),
        (holding("bad", '{"credHelpers": {}}'), f'{JSON} has no "auths"'),
        (holding("bad", "{}", key="other"), f"it has no key {JSON}"),
        (secret("bad", "x.io") | {"data": None}, f"it has no key {JSON}"),
        (secret("bad", "x.io") | {"data": {JSON: "not base64!"}}, f"{JSON} is not JSON"),
        (secret("bad", "x.io") | {"data": {JSON: 7}}, f"{JSON} is not JSON"),
        (holding("bad", '{"auths": {"x.io": "dTpw"}}'), _WRONG.format(1, 1)),
        (holding("bad", '{"auths": {"": {}}}'), _WRONG.format(1, 1)),
    ],
)
def test_a_malformed_secret_hides_no_other(broken, says) -> None:
    result, malformed = index([broken, secret("good", "nvcr.io")])
    assert result == PullSecrets({"nvcr.io": ("good",)})
    assert malformed == (Malformed("bad", says),)


def test_valid_parts_of_a_malformed_secret_are_used() -> None:
    result, malformed = index([holding("half", '{"auths": {"nvcr.io": {"auth": "dTpw"}, "quay.io": 1}}')])
    assert result.of_hosts({"nvcr.io"}) == {"half"}
    assert [each.name for each in malformed] == ["half"]


SECRETS = PullSecrets({"docker.io": ("hub",), "nvcr.io": ("b-ngc", "a-ngc"), "quay.io": ("quay",)})


def pod(single: KubeObject, secrets: PullSecrets = SECRETS) -> KubeObject:
    (dcd,) = building.component_deployments(building.graph(single)).values()
    (deployment,) = building.of_kind(building.component_children(dcd, pull_secrets=secrets), "Deployment")
    return deployment["spec"]["template"]["spec"]


NGC = {"image": "nvcr.io/nvidia/x:1"}


@pytest.mark.parametrize(
    ("single", "names"),
    [
        (building.component(main=NGC), ["a-ngc", "b-ngc"]),
        (building.component(), ["hub"]),
        (building.component(main={"image": "ghcr.io/x"}), None),
        (building.component(main=NGC, sidecars=[{"name": "log", "image": "fluentd:1"}]), ["a-ngc", "b-ngc", "hub"]),
        (
            building.component(main=NGC, pod={"initContainers": [{"name": "i", "image": "quay.io/x"}]}),
            ["a-ngc", "b-ngc", "quay"],
        ),
        (
            building.component(main=NGC, pod={"volumes": [{"name": "m", "image": {"reference": "quay.io/model:1"}}]}),
            ["a-ngc", "b-ngc", "quay"],
        ),
        # The user's secrets come first, in their order, each once.
        (
            building.component(main=NGC, pod={"imagePullSecrets": [{"name": "z"}, {"name": "b-ngc"}]}),
            ["z", "b-ngc", "a-ngc"],
        ),
        (building.component(main={"image": "ghcr.io/x"}, pod={"imagePullSecrets": [{"name": "z"}]}), ["z"]),
        (building.component(main=NGC, annotations={"nvidia.com/disable-image-pull-secret-discovery": "true"}), None),
        (
            building.component(main=NGC, annotations={"nvidia.com/disable-image-pull-secret-discovery": "false"}),
            ["a-ngc", "b-ngc"],
        ),
    ],
)
def test_pods_get_the_secrets_of_their_images(single, names) -> None:
    observed = pod(single).get("imagePullSecrets")
    assert observed == (None if names is None else [{"name": name} for name in names])


def test_pods_on_grove_get_the_secrets_and_the_account_too() -> None:
    config = render.RenderConfig(grove=True, discovery_backend="etcd")
    around = render.ObservedComponent(pull_secrets=SECRETS, service_account="runner")
    children = building.graph_children(building.graph(building.component(main=NGC)), config, around=around)
    (made,) = building.of_kind(children, "PodCliqueSet")
    (clique,) = made["spec"]["template"]["cliques"]
    assert clique["spec"]["podSpec"]["imagePullSecrets"] == [{"name": "a-ngc"}, {"name": "b-ngc"}]
    assert clique["spec"]["podSpec"]["serviceAccountName"] == "runner"


def test_pods_on_grove_do_not_name_the_default_account() -> None:
    """As in the reference: for Grove, the name that Kubernetes fills in would be another template."""
    config = render.RenderConfig(grove=True, discovery_backend="etcd")
    (made,) = building.of_kind(building.graph_children(building.graph(building.component()), config), "PodCliqueSet")
    (clique,) = made["spec"]["template"]["cliques"]
    assert "serviceAccountName" not in clique["spec"]["podSpec"]


def test_all_nodes_of_a_replica_get_the_secrets() -> None:
    config = render.RenderConfig(leader_worker_sets=True)
    wide = building.component(
        main={
            **NGC,
            "command": ["python3"],
            "args": ["-m", "dynamo.vllm"],
            "resources": {"limits": {"nvidia.com/gpu": "1"}},
        },
        multinode={"nodeCount": 2},
    )
    (dcd,) = building.component_deployments(building.graph(wide), config).values()
    (made,) = building.of_kind(building.component_children(dcd, config, pull_secrets=SECRETS), "LeaderWorkerSet")
    for template in ("leaderTemplate", "workerTemplate"):
        result = made["spec"]["leaderWorkerTemplate"][template]["spec"]["imagePullSecrets"]
        assert {"name": "a-ngc"} in result


def test_no_message_repeats_a_key_because_it_may_hold_a_password() -> None:
    _, malformed = index([holding("bad", '{"auths": {"user:s3cr3t@x.io": 1, "https://u:s3cr3t@y.io/v1": "dTpw"}}')])
    assert malformed == (Malformed("bad", _WRONG.format(2, 2)),)


def test_a_key_with_a_password_still_matches_its_host() -> None:
    result, malformed = index([holding("s", '{"auths": {"https://user:s3cr3t@x.io/v1": {}}}')])
    assert (dict(result.by_host), malformed) == ({"x.io": ("s",)}, ())


def test_thousands_of_registries_are_one_problem_and_the_first_ones_are_used() -> None:
    for most, form in ((MOST_HOSTS, "r{}.io"), (MOST_PATTERNS, "*.r{}.io")):
        result, malformed = index([secret("many", *map(form.format, range(5000)))])
        assert len(result.by_host) == most
        assert malformed == (Malformed("many", _WRONG.format(5000 - most, 5000)),)
    wrong = ", ".join(f'"r{number}.io": 1' for number in range(9000))
    result, malformed = index([holding("many", f'{{"auths": {{{wrong}}}}}'), secret("good", "r1.io")])
    assert result.by_host == {"r1.io": ("good",)}
    assert malformed == (Malformed("many", _WRONG.format(9000, 9000)),)


def test_a_registry_is_compared_with_each_pattern_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenant writes both: thousands of images, and patterns with a hundred parts."""
    asked: list[tuple[str, str]] = []

    def matches(host: str, pattern: str) -> bool:
        asked.append((host, pattern))
        return fnmatchcase(host, pattern)

    monkeypatch.setattr(pull_secrets, "fnmatchcase", matches)
    parts = ".".join("*" * 120)
    known, _ = index([secret("s", *(f"{parts}.{number}" for number in range(20)))])
    image = f"{'.'.join('a' * 120)}.5/x"
    template: KubeObject = {"containers": [{"name": f"c{number}", "image": image} for number in range(30)]}
    pull_secrets.add(template, known, {})
    assert template["imagePullSecrets"] == [{"name": "s"}]
    assert len(asked) == 20
