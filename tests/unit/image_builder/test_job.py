"""The Job of a build."""

import pytest
from dynamo_image_builder.job import arguments, build_job
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels
from dynamo_shared.runtime.settings.image_builder import ImageBuilder
from pydantic import ValidationError

from .building import ARCHIVE, build, settings


def pod(of: ImageBuilder) -> KubeObject:
    spec: KubeObject = build_job(build(of), "ns", of)["spec"]["template"]["spec"]
    return spec


def variables(container: KubeObject) -> dict[str, object]:
    return {each["name"]: each.get("value", each.get("valueFrom")) for each in container["env"]}


def test_one_build_has_one_job_in_the_namespace_of_builds() -> None:
    made = build_job(build(), "ns", settings(namespace="builds", deadline="10m", keep="2h"))
    assert made["metadata"]["name"] == build().job == f"dynamo-build-{build().id}"
    assert made["metadata"]["namespace"] == "builds"
    assert made["metadata"]["labels"][labels.IMAGE_BUILD] == build().id
    assert "ownerReferences" not in made["metadata"]
    assert (made["spec"]["activeDeadlineSeconds"], made["spec"]["ttlSecondsAfterFinished"]) == (600, 7200)
    assert made["spec"]["backoffLimit"] == 0
    # After a drained or full node, the Job builds again by itself.
    (rule,) = made["spec"]["podFailurePolicy"]["rules"]
    assert (rule["action"], [each["type"] for each in rule["onPodConditions"]]) == ("Ignore", ["DisruptionTarget"])


@pytest.mark.parametrize("keep", ["0s", "5s"])
def test_a_job_stays_until_its_digest_is_read(keep: str) -> None:
    """A Job that is deleted at its end would be created again, without end."""
    with pytest.raises(ValidationError, match="greater than or equal to 60"):
        settings(keep=keep)


def test_the_archive_is_fetched_first_with_its_digest_and_its_limits() -> None:
    (fetch,) = pod(settings(store={"endpoint": "http://store:80"}, maxArchiveSize=5, archiveTimeout="90s"))[
        "initContainers"
    ]
    assert variables(fetch) == {
        "ARCHIVE_ENDPOINT": "http://store:80",
        "ARCHIVE_NAME": "frontend",
        "ARCHIVE_VERSION": "jh2o6dqzpsgfued4",
        "ARCHIVE_DIGEST": ARCHIVE,
        "ARCHIVE_LIMIT": "5",
        "ARCHIVE_TIMEOUT": "90",
    }
    assert fetch["command"][:2] == ["python3", "-c"]
    compile(fetch["command"][2], "fetch.py", "exec")


def test_a_rootless_build_may_make_user_namespaces_and_is_not_privileged() -> None:
    made = pod(settings())
    (builder,) = made["containers"]
    assert builder["securityContext"] == {
        "runAsUser": 1000,
        "runAsGroup": 1000,
        "seccompProfile": {"type": "Unconfined"},
        "appArmorProfile": {"type": "Unconfined"},
    }
    assert variables(builder)["BUILDKITD_FLAGS"] == "--oci-worker-no-process-sandbox"
    assert "buildctl-daemonless.sh" in builder["command"]
    assert made["automountServiceAccountToken"] is False
    assert {each["name"] for each in made["volumes"]} == {"workspace", "state"}
    assert set(builder["resources"]) == {"requests", "limits"}


def restricted(container: KubeObject) -> bool:
    security = container["securityContext"]
    return security == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def test_a_build_by_an_existing_buildkitd_is_restricted_and_verifies_its_certificates() -> None:
    made = pod(settings(buildkit={"url": "tcp://buildkitd:1234", "tlsSecret": "client"}))
    assert all(restricted(each) for each in (*made["initContainers"], *made["containers"]))
    assert made["securityContext"]["runAsNonRoot"] is True
    assert made["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert made["containers"][0]["command"][4:10] == [
        "buildctl",
        "--addr=tcp://buildkitd:1234",
        "--tlscacert=/certificates/ca.crt",
        "--tlscert=/certificates/tls.crt",
        "--tlskey=/certificates/tls.key",
        "build",
    ]
    assert {"name": "certificates", "secret": {"secretName": "client"}} in made["volumes"]
    assert "--tlscacert=/certificates/ca.crt" not in arguments(build(), settings(buildkit={"url": "tcp://b:1"}))


def test_the_engine_buildkit_rootless_leaves_an_existing_buildkitd_alone() -> None:
    rootless = settings(engine="buildkit-rootless", buildkit={"url": "tcp://buildkitd:1234"})
    assert arguments(build(rootless), rootless)[0] == "buildctl-daemonless.sh"


@pytest.mark.parametrize(
    ("given", "output"),
    [
        ({}, "push=true"),
        ({"registry": {"secure": False}}, "push=true,registry.insecure=true"),
        ({"estargz": True}, "push=true,oci-mediatypes=true,compression=estargz,force-compression=true"),
    ],
)
def test_the_image_is_pushed_as_the_settings_say(given: dict[str, object], output: str) -> None:
    of = settings(**given)
    assert arguments(build(of), of)[-1] == f"--output=type=image,name={build(of).target.push},{output}"


def test_a_pull_secret_is_mounted_only_for_the_builder() -> None:
    made = pod(settings(registry={"secret": "push"}))
    volume = {"secretName": "push", "items": [{"key": ".dockerconfigjson", "path": "config.json"}]}
    assert {"name": "credentials", "secret": volume} in made["volumes"]
    mount = {"name": "credentials", "mountPath": "/workspace/docker", "readOnly": True}
    assert mount in made["containers"][0]["volumeMounts"]
    assert mount not in made["initContainers"][0]["volumeMounts"]
    assert variables(made["containers"][0])["DOCKER_CONFIG"] == "/workspace/docker"


def test_a_user_name_takes_the_password_from_the_secret() -> None:
    made = pod(settings(registry={"secret": "push", "username": "robot", "inClusterServer": "inside:5000"}))
    held = variables(made["initContainers"][0])
    assert held["REGISTRY_USERNAME"] == "robot"
    assert held["REGISTRY_SERVER"] == "inside:5000"
    assert held["REGISTRY_PASSWORD"] == {"secretKeyRef": {"name": "push", "key": "password"}}
    assert {each["name"] for each in made["volumes"]} == {"workspace", "state"}


def test_the_password_of_the_store_comes_from_its_secret() -> None:
    store = {"endpoint": "oci://r.example.com/archives", "username": "u", "passwordFile": "/p", "secret": "store"}
    held = variables(pod(settings(store=store))["initContainers"][0])
    assert held["ARCHIVE_PASSWORD"] == {"secretKeyRef": {"name": "store", "key": "password"}}
    assert held["ARCHIVE_USERNAME"] == "u"


PLACED = {
    "nodeSelector": {"pool": "builds"},
    "tolerations": [{"key": "builds", "operator": "Exists", "effect": "NoSchedule", "tolerationSeconds": 0}],
    "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}},
    "priorityClassName": "low",
    "runtimeClassName": "kata",
    "imagePullSecrets": [{"name": "mirror"}],
}


def test_pods_of_builds_run_where_the_settings_say() -> None:
    assert PLACED.items() <= pod(settings(pod=PLACED)).items()
    assert not PLACED.keys() & pod(settings()).keys()


def test_labels_of_the_settings_do_not_replace_those_of_the_platform() -> None:
    """The platform lists the pods of a build by its own labels."""
    of = settings(pod={"labels": {"team": "a", labels.IMAGE_BUILD: "x"}, "annotations": {"mesh/inject": "false"}})
    metadata = build_job(build(of), "ns", of)["spec"]["template"]["metadata"]
    assert metadata["labels"].items() >= {"team": "a", labels.IMAGE_BUILD: build(of).id}.items()
    assert metadata["annotations"] == {"mesh/inject": "false"}


def test_both_containers_have_resources_as_a_quota_may_require() -> None:
    limits = {"cpu": "2", "memory": "1Gi"}
    made = pod(settings(resources={"limits": limits}, fetchResources={"limits": limits}))
    assert [each["resources"]["limits"] for each in (*made["initContainers"], *made["containers"])] == [limits, limits]
    assert made["initContainers"][0]["resources"]["requests"] == {"cpu": "100m", "memory": "64Mi"}


PROXY = {"httpProxy": "http://proxy:3128", "httpsProxy": "http://proxy:3129", "noProxy": ".svc,10.0.0.0/8"}
VARIABLES = {"HTTP_PROXY": "http://proxy:3128", "HTTPS_PROXY": "http://proxy:3129", "NO_PROXY": ".svc,10.0.0.0/8"}


@pytest.mark.parametrize("buildkit", [{}, {"url": "tcp://buildkitd:1234"}], ids=["rootless", "existing"])
def test_both_containers_and_the_steps_use_the_proxy(buildkit: dict[str, str]) -> None:
    """An existing buildkitd has its own. buildctl gets registry tokens itself, and steps get only arguments."""
    of = settings(proxy=PROXY, buildkit=buildkit)
    for container in (*pod(of)["initContainers"], *pod(of)["containers"]):
        assert VARIABLES.items() <= variables(container).items()
    given = {each.removeprefix("--opt=build-arg:") for each in arguments(build(of), of) if each.startswith("--opt=")}
    assert given == {f"{name}={value}" for name, value in VARIABLES.items()}
    assert not [each for each in arguments(build(), settings(buildkit=buildkit)) if each.startswith("--opt=")]


def test_ca_certificates_come_from_the_config_map() -> None:
    made = pod(settings(authorities={"configMap": "company", "key": "bundle.pem"}))
    assert {"name": "authorities", "configMap": {"name": "company"}} in made["volumes"]
    for container in (*made["initContainers"], *made["containers"]):
        assert {"name": "authorities", "mountPath": "/authorities", "readOnly": True} in container["volumeMounts"]
        assert variables(container)["SSL_CERT_FILE"] == "/authorities/bundle.pem"


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"proxy": {"httpsProxy": "http://user:secret@proxy:3128"}}, "must not have a user name or password"),
        ({"proxy": {"httpProxy": "proxy:3128"}}, "should match pattern"),
        ({"authorities": {"configMap": "A b"}}, "should match pattern"),
        ({"authorities": {"key": "../ca.crt"}}, "should match pattern"),
        ({"pod": {"nodeSelectors": {}}}, "Extra inputs are not permitted"),
        ({"pod": {"tolerations": [{"key": "a", "operater": "Exists"}]}}, "Extra inputs are not permitted"),
        ({"pod": {"affinity": {"nodesAffinity": {}}}}, "Input should be 'nodeAffinity'"),
        ({"pod": {"imagePullSecrets": [{}]}}, "Field required"),
        ({"fetchResources": {"limits": {"memory": "much"}}}, "memory"),
    ],
)
def test_invalid_settings_of_builds_are_rejected(wrong: dict[str, object], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        settings(**wrong)
