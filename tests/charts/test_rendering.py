"""Renderings: the committed ones, and what holds for all of them."""

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from dynamo_ctl import settings
from dynamo_ctl.commands.bootstrap.specification import load
from dynamo_ctl.services import SERVICES
from dynamo_shared.api.crds.build import definition_of
from dynamo_shared.bus import streams
from dynamo_shared.runtime.settings.image_builder import ImageBuilder

from tests.charts import helm

GOLDENS = Path(__file__).parent / "goldens"
each_file = pytest.mark.parametrize("values", helm.VALUES, ids=lambda path: path.stem)


def leaves(value: Any) -> list[Any]:
    """All scalars within."""
    if isinstance(value, dict):
        return [leaf for each in value.values() for leaf in leaves(each)]
    return [leaf for each in value for leaf in leaves(each)] if isinstance(value, list) else [value]


def test_there_are_twelve_files_of_values() -> None:
    assert len(helm.VALUES) >= 12


@pytest.mark.parametrize("chart", [helm.PLATFORM, helm.CRDS], ids=lambda path: path.name)
def test_lint(chart: Path) -> None:
    outcome = helm.run("lint", "--strict", chart)
    assert outcome.returncode == 0, outcome.stdout


@each_file
def test_golden(values: Path) -> None:
    text = helm.rendering(values)
    golden = GOLDENS / values.name
    if os.environ.get("UPDATE_GOLDENS"):
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8"), "changed on purpose? make charts ARGS=--update, and commit"


@each_file
def test_every_object_says_whose_it_is(values: Path) -> None:
    for each in helm.rendered(values):
        if each["metadata"]["name"] in ("dynamo-platform-extra", "written-as-text"):
            continue
        result = each["metadata"]["labels"]
        assert result["app.kubernetes.io/instance"] == helm.RELEASE
        assert result["app.kubernetes.io/part-of"] == "dynamo-platform"


@each_file
def test_nothing_has_a_name_twice(values: Path) -> None:
    names = [(o["kind"], o["metadata"].get("namespace"), o["metadata"]["name"]) for o in helm.rendered(values)]
    assert len(names) == len(set(names))


@each_file
def test_pods_hold_what_restricted_namespaces_ask_and_no_token_that_they_do_not_need(values: Path) -> None:
    for name, pod in helm.pods(helm.rendered(values)):
        assert pod["securityContext"]["runAsNonRoot"], name
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, name
        assert pod["enableServiceLinks"] is False, name
        servers = name.startswith("StatefulSet")
        assert pod["automountServiceAccountToken"] is not servers, name
        for container in pod["containers"]:
            security = container["securityContext"]
            assert security["readOnlyRootFilesystem"], name
            assert security["capabilities"] == {"drop": ["ALL"]}, name
            assert security["allowPrivilegeEscalation"] is False, name
            assert set(container["resources"]) == {"requests", "limits"}, name
            assert container["resources"]["limits"].keys() == {"memory"}, name


@each_file
def test_the_configuration_is_one_that_the_platform_takes(values: Path, tmp_path: Path) -> None:
    (config,) = [o for o in helm.of_kind(helm.rendered(values), "ConfigMap") if "config.yaml" in o["data"]]
    file = tmp_path / "config.yaml"
    file.write_text(config["data"]["config.yaml"])
    settings.load(file)


@each_file
def test_pods_mount_secrets_that_the_job_creates(values: Path, tmp_path: Path) -> None:
    objects = helm.rendered(values)
    mounted = {
        volume["secret"]["secretName"]
        for _, pod in helm.pods(objects)
        for volume in pod.get("volumes", ())
        if "secret" in volume
    }
    specified = [o for o in helm.of_kind(objects, "ConfigMap") if "credentials.yaml" in o["data"]]
    created = {o["spec"]["secretName"] for o in helm.of_kind(objects, "Certificate")}
    for each in specified:
        file = tmp_path / "credentials.yaml"
        file.write_text(each["data"]["credentials.yaml"])
        desired = load(file)
        created |= {entry.secret for entry in desired.certificates} | {entry.secret for entry in desired.users}
        created |= {desired.nats_authorization, *desired.keys}
    own = {name for name in mounted if name.startswith("dynamo")}
    if values.stem not in ("given", "existing"):
        assert own <= created


def test_each_service_has_a_cluster_role_of_its_own_however_long_the_namespace_is() -> None:
    objects = helm.objects("--set", "metrics.secure=true", namespace="n" * 63)
    names = [(each["kind"], each["metadata"]["name"]) for each in helm.of_kind(objects, "ClusterRole")]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("settings", "service", "ports"),
    [
        ("nats.mode=existing,nats.existing.servers={tls://nats-1,tls://nats-2:4223}", "watcher", {4222, 4223}),
        ("etcd.mode=existing,etcd.existing.endpoints={https://10.0.0.5}", "watcher", {2379}),
        ("dynadmin.oidc.issuer=https://login1/realms/2", "dynadmin", {443}),
        ("dynadmin.oidc.issuer=http://10.0.0.5:8080", "dynadmin", {8080}),
        ("dynadmin.oidc.issuer=https://a,dynadmin.oidc.jwksUri=https://b:8443/keys", "dynadmin", {443, 8443}),
    ],
)
def test_services_reach_the_ports_of_addresses(settings: str, service: str, ports: set[int]) -> None:
    """Digits at the end of a name are not a port."""
    given = f"{settings},dynadmin.enabled=true,dynadmin.oidc.audience=dynamo"
    policy = helm.one(helm.objects("--set", given), "NetworkPolicy", service)
    reached = {port["port"] for rule in policy["spec"]["egress"] for port in rule.get("ports", ())}
    # DNS, the API server, and the NATS and etcd of the release where the address is of another.
    assert ports <= reached <= ports | {53, 5353, 443, 6443, 4222, 2379}


@pytest.mark.parametrize(("values", "who"), [("default", None), ("monitoring", "monitoring")])
def test_only_those_who_are_named_reach_the_monitoring_of_nats(values: str, who: str | None) -> None:
    """It has no login, and names connections, inboxes and what consumers read: graphs of all namespaces among that."""
    policy = helm.one(helm.rendered(helm.PLATFORM / "ci" / f"{values}.yaml"), "NetworkPolicy", "nats")
    rules = [rule for rule in policy["spec"]["ingress"] if {"port": 8222, "protocol": "TCP"} in rule["ports"]]
    peers = [peer["namespaceSelector"]["matchLabels"] for rule in rules for peer in rule["from"]]
    assert peers == ([{"kubernetes.io/metadata.name": who}] if who else [])


@pytest.mark.parametrize(("settings", "duration"), [((), "87600h"), (("credentials.issuerRef.name=own",), "2160h")])
def test_the_certificate_of_nats_lasts_because_no_renewal_restarts_nats(
    settings: tuple[str, ...], duration: str
) -> None:
    values = ("--values", helm.PLATFORM / "ci" / "cert-manager.yaml")
    objects = helm.objects(*values, *(part for each in settings for part in ("--set", each)))
    certificates = helm.of_kind(objects, "Certificate")
    durations = {each["metadata"]["name"]: each["spec"]["duration"] for each in certificates}
    assert durations["dynamo-platform-nats-server"] == duration
    assert durations["dynamo-platform-watcher-etcd"] == durations["dynamo-platform-webhook"] == "2160h"


def test_the_cluster_may_choose_users() -> None:
    """OpenShift refuses users and groups that are not of the namespace's range."""
    for name, pod in helm.pods(helm.objects("--set", "runAsUser=null")):
        assert not {"runAsUser", "runAsGroup", "fsGroup"} & pod["securityContext"].keys(), name


def test_all_images_are_those_of_the_mirror() -> None:
    """Those that the platform runs itself, too: of the trial, of builds, and where an archive is fetched."""
    objects = helm.rendered(helm.PLATFORM / "ci" / "mirror.yaml")
    images = {each["image"] for _, pod in helm.pods(objects) for each in pod["containers"]}
    (trial,) = (pod for name, pod in helm.pods(objects) if name.startswith("Pod "))
    images |= {each.removeprefix("--image=") for each in trial["containers"][0]["args"] if each.startswith("--image=")}
    settings_ = yaml.safe_load(helm.one(objects, "ConfigMap", "config")["data"]["config.yaml"])
    builder = settings_["platform"]["imageBuilder"]
    images |= {builder["fetchImage"], builder["buildkit"]["image"]}
    assert len(images) == 6
    assert [each for each in images if not each.startswith("mirror.example.com/ai/")] == []
    assert builder["pod"]["imagePullSecrets"] == [{"name": "mirror"}]


def test_the_image_of_the_trial_may_be_a_text_as_in_older_values() -> None:
    objects = helm.objects("--set", "tests.image=own.example/vllm:1,global.imageRegistry=mirror.example")
    (trial,) = (pod for name, pod in helm.pods(objects) if name.startswith("Pod "))
    assert "--image=own.example/vllm:1" in trial["containers"][0]["args"]


def test_buildkit_is_that_of_the_settings() -> None:
    values = yaml.safe_load((helm.PLATFORM / "values.yaml").read_text())["imageBuilder"]["buildkitImage"]
    assert "{registry}/{repository}:{tag}".format(**values) == ImageBuilder().buildkit.image


def test_services_reach_dns_and_the_collector_of_traces() -> None:
    """DNS of OpenShift listens on 5353, and policies hold for the port of the pod."""
    policies = helm.of_kind(helm.rendered(helm.PLATFORM / "ci" / "settings.yaml"), "NetworkPolicy")
    reached = {
        policy["metadata"]["name"].removeprefix("dynamo-platform-"): {
            port["port"] for rule in policy["spec"]["egress"] for port in rule.get("ports", ())
        }
        for policy in policies
    }
    assert {name for name, ports in reached.items() if {53, 5353} <= ports} == reached.keys()
    assert {name for name, ports in reached.items() if 4318 in ports} == {*SERVICES} & reached.keys()


def test_secrets_of_cert_manager_have_the_labels_of_those_of_the_job() -> None:
    """docs/uninstall.md deletes Secrets by their labels."""
    certificates = helm.of_kind(helm.rendered(helm.PLATFORM / "ci" / "cert-manager.yaml"), "Certificate")
    labels = [each["spec"].get("secretTemplate", {}).get("labels", {}) for each in certificates]
    assert certificates
    assert {each.get("app.kubernetes.io/part-of") for each in labels} == {"dynamo-platform"}


def test_labels_of_values_take_no_labels_away_by_which_pods_are_selected() -> None:
    given = {"app.kubernetes.io/part-of": "suite", "app.kubernetes.io/component": "x", "team": "a"}
    text = helm.template("--set-json", f"commonLabels={json.dumps(given)}", "--set", "defaults.podLabels.team=b")
    for each in filter(None, yaml.load_all(text, UniqueKeys)):
        assert each["metadata"]["labels"]["app.kubernetes.io/part-of"] == "dynamo-platform"
        if each["kind"] == "Deployment":
            template = each["spec"]["template"]["metadata"]["labels"]
            assert each["spec"]["selector"]["matchLabels"].items() <= template.items()
            assert template["team"] == "b"


class UniqueKeys(yaml.SafeLoader):
    """A parser that takes no key twice, as kustomize and Flux do not."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """The mapping; an AssertionError for a key that it has twice."""
        keys = [key.value for key, _ in node.value]
        assert len(keys) == len(set(keys)), keys
        return super().construct_mapping(node, deep)


def test_services_have_no_budget_where_the_values_say_as_their_description_does() -> None:
    described = (helm.PLATFORM / "values.yaml").read_text().partition("  podDisruptionBudget:")[0].splitlines()[-1]
    assert "null, in place of the whole: no budget" in described
    objects = helm.objects("--set", "defaults.podDisruptionBudget=null")
    budgets = helm.of_kind(objects, "PodDisruptionBudget")
    assert {each["metadata"]["name"] for each in budgets} == {"dynamo-platform-nats", "dynamo-platform-etcd"}


def test_one_service_lets_all_its_pods_go_as_the_description_says() -> None:
    """Helm drops a null of a service before the templates see it."""
    described = (helm.PLATFORM / "values.yaml").read_text().partition("  podDisruptionBudget:")[0].splitlines()[-1]
    assert "of one service: `{minAvailable: 0}`" in described
    objects = helm.objects("--set", "services.watcher.podDisruptionBudget.minAvailable=0")
    budgets = helm.of_kind(objects, "PodDisruptionBudget")
    least = {each["metadata"]["name"]: each["spec"].get("minAvailable") for each in budgets}
    assert (least["dynamo-platform-watcher"], least["dynamo-platform-scaler"]) == (0, None)


@pytest.mark.parametrize(
    ("settings", "budget"),
    [
        ("", {"maxUnavailable": 1}),
        (",defaults.replicas=1", {"maxUnavailable": 1}),
        (",services.admission.autoscaling.minReplicas=1", {"maxUnavailable": 1}),
        (",services.admission.autoscaling.minReplicas=1,defaults.podDisruptionBudget.minAvailable=1", None),
        (",defaults.podDisruptionBudget.minAvailable=1", {"minAvailable": 1}),
        (",services.admission.autoscaling.minReplicas=1,services.admission.autoscaling.maxReplicas=1", None),
    ],
)
def test_the_budget_of_an_autoscaled_service_is_of_the_pods_that_there_may_be(
    settings: str, budget: dict[str, int] | None
) -> None:
    """The replicas of the values are not those of the Deployment. One pod that must stay keeps a node from being drained."""
    objects = helm.objects("--set", f"services.admission.autoscaling.enabled=true{settings}")
    made = {each["metadata"]["name"]: each["spec"] for each in helm.of_kind(objects, "PodDisruptionBudget")}
    rendered = made.get("dynamo-platform-admission")
    assert (
        rendered and {key: rendered[key] for key in ("minAvailable", "maxUnavailable") if key in rendered}
    ) == budget


def test_the_budget_of_a_service_wins_over_that_of_all() -> None:
    given = "defaults.podDisruptionBudget.minAvailable=1,services.watcher.podDisruptionBudget.maxUnavailable=2"
    objects = helm.objects("--set", given)
    of = {name: helm.one(objects, "PodDisruptionBudget", name)["spec"] for name in ("watcher", "scaler")}
    assert {"minAvailable", "maxUnavailable"} & of["watcher"].keys() == {"maxUnavailable"}
    assert {"minAvailable", "maxUnavailable"} & of["scaler"].keys() == {"minAvailable"}


def test_the_kubelet_does_not_evict_a_nats_without_a_volume() -> None:
    """Without a limit of its own it takes three quarters of the node's disk, and its folder may have 10Gi."""
    objects = helm.objects("--set", "nats.persistence.enabled=false")
    assert "max_file_store: 10G\n" in helm.one(objects, "ConfigMap", "nats")["data"]["nats.conf"]


def test_streams_fit_into_the_smallest_volume() -> None:
    """NATS created none of them on one of 2Gi (error 10047), and the watcher did not start."""
    taken = sum(each.max_bytes for each in streams.ALL)
    assert f"(lt $bytes {taken})" in (helm.PLATFORM / "templates" / "_helpers.tpl").read_text()
    rendered = helm.rendered(helm.PLATFORM / "ci" / "small.yaml")
    configuration = helm.one(rendered, "ConfigMap", "nats")["data"]["nats.conf"]
    assert "max_file_store: 6G\n" in configuration
    assert taken < 6 * 10**9


def test_a_user_of_nats_that_is_a_service_and_listed_has_one_password() -> None:
    objects = helm.objects("--set", "dynadmin.enabled=true,nats.users={integrator,dynadmin,integrator}")
    specified = yaml.safe_load(helm.one(objects, "ConfigMap", "credentials")["data"]["credentials.yaml"])
    names = [each["service"] for each in specified["users"]]
    assert len(names) == len(set(names))
    assert {"dynadmin", "integrator", "watcher"} <= set(names)


def test_labels_of_the_namespace_of_builds_are_not_those_of_its_annotations() -> None:
    values = ("--values", helm.PLATFORM / "ci" / "image-builder.yaml")
    objects = helm.objects(*values, "--set-json", 'commonAnnotations={"example.com/labels": "a"}')
    (namespace,) = helm.of_kind(objects, "Namespace")
    assert namespace["metadata"]["annotations"] == {"example.com/labels": "a"}
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"


def test_the_certificate_of_the_webhooks_is_in_the_secret_of_the_settings() -> None:
    values = ("--values", helm.PLATFORM / "ci" / "cert-manager.yaml")
    objects = helm.objects(*values, "--set", "config.server.webhook.secretName=tls")
    volumes = helm.one(objects, "Deployment", "admission")["spec"]["template"]["spec"]["volumes"]
    assert "tls" in {each["spec"]["secretName"] for each in helm.of_kind(objects, "Certificate")}
    assert "tls" in {each["secret"]["secretName"] for each in volumes if "secret" in each}


def test_pods_that_run_a_command_are_placed_as_the_services_are() -> None:
    """`helm test` waited without end in a cluster whose nodes all have a taint; a sidecar keeps a Job from its end."""
    objects = helm.rendered(helm.PLATFORM / "ci" / "tuned.yaml")
    commands = {name: pod for name, pod in helm.pods(objects) if name.startswith(("Job", "Pod"))}
    assert len(commands) == 3
    for name, pod in commands.items():
        assert pod["nodeSelector"] == {"node-role.kubernetes.io/control-plane": ""}, name
        assert [each["effect"] for each in pod["tolerations"]] == ["NoSchedule"], name
        assert pod["hostUsers"] is False, name
        assert pod["priorityClassName"] == "system-cluster-critical", name
    templates = [each["spec"]["template"] for each in helm.of_kind(objects, "Job")]
    for each in (*templates, *helm.of_kind(objects, "Pod")):
        assert each["metadata"]["labels"]["sidecar.example.com/inject"] == "false"


def test_every_pod_has_the_fields_that_the_values_add_to_its_spec() -> None:
    pods = dict(helm.pods(helm.rendered(helm.PLATFORM / "ci" / "tuned.yaml")))
    for name, pod in pods.items():
        assert pod["dnsConfig"] == {"options": [{"name": "ndots", "value": "2"}]}, name
        assert pod["schedulerName"] == "default-scheduler", name
        assert ("hostAliases" in pod) is name.endswith("admission"), name


def test_webhooks_on_the_network_of_their_nodes_leave_the_ports_before_new_ones_come() -> None:
    objects = helm.objects("--set", "services.admission.podSpec.hostNetwork=true")
    admission = helm.one(objects, "Deployment", "admission")["spec"]
    assert admission["template"]["spec"]["hostNetwork"] is True
    assert admission["strategy"]["rollingUpdate"] == {"maxUnavailable": 1, "maxSurge": 0}


def test_servers_are_placed_and_labelled_as_their_values_say() -> None:
    """A proxy of a mesh, which a label keeps out, breaks the TLS between members; zones that must differ are an affinity."""
    tuned, default = (helm.rendered(helm.PLATFORM / "ci" / f"{name}.yaml") for name in ("tuned", "default"))
    servers = {each["metadata"]["name"]: each["spec"]["template"] for each in helm.of_kind(tuned, "StatefulSet")}
    nats, etcd = servers["dynamo-nats"], servers["dynamo-etcd"]
    for each in (nats, etcd):
        assert each["metadata"]["labels"]["sidecar.example.com/inject"] == "false"
    assert "requiredDuringSchedulingIgnoredDuringExecution" in nats["spec"]["affinity"]["podAntiAffinity"]
    assert [each["whenUnsatisfiable"] for each in etcd["spec"]["topologySpreadConstraints"]] == ["DoNotSchedule"]
    (preferred,) = helm.one(default, "StatefulSet", "nats")["spec"]["template"]["spec"]["affinity"]["podAntiAffinity"]
    assert preferred == "preferredDuringSchedulingIgnoredDuringExecution"


def test_pods_that_run_a_command_have_resources_that_a_quota_may_ask_for() -> None:
    objects = helm.objects("--set", "commands.resources.limits.cpu=1")
    commands = [pod for name, pod in helm.pods(objects) if name.startswith(("Job", "Pod"))]
    limits = [container["resources"]["limits"] for pod in commands for container in pod["containers"]]
    assert limits == [{"cpu": 1, "memory": "256Mi"}] * 3


@each_file
def test_names_that_look_like_numbers_stay_text(values: Path) -> None:
    """A namespace may be called 20260, and the API server takes no number for a name or a label."""
    names = "fullnameOverride=dynamo,nameOverride=30303"
    objects = helm.objects("--values", values, "--set-string", names, release="10101", namespace="20202")
    assert not [each for each in leaves([*objects]) if each in (10101, 20202, 30303)]


@pytest.mark.parametrize(
    ("settings", "names"),
    [
        (
            "webhook.certProvisionMode=manual,dynadmin.enabled=true,dynadmin.oidc.issuer=https://a,"
            "dynadmin.oidc.audience=a,dynadmin.oidc.clientId=a,dynadmin.ingress.enabled=true,dynadmin.ingress.host=a.b",
            "defaults.priorityClassName nats.priorityClassName nats.persistence.storageClassName "
            "etcd.persistence.storageClassName webhook.secretName dynadmin.tlsSecret dynadmin.sessionSecret "
            "dynadmin.oidc.caSecret dynadmin.oidc.loginSecret dynadmin.ingress.className dynadmin.ingress.tlsSecret",
        ),
        (
            "nats.mode=existing,nats.existing.servers={tls://a:4222},etcd.mode=existing,"
            "etcd.existing.endpoints={https://a:2379}",
            "nats.existing.caSecret nats.existing.credentialSecrets.default etcd.existing.tlsSecret "
            "etcd.existing.credentialsSecret",
        ),
        ("webhook.certProvisionMode=cert-manager", "webhook.secretName"),
    ],
    ids=["own servers", "existing servers", "cert-manager"],
)
def test_names_of_values_that_look_like_numbers_stay_text(settings: str, names: str) -> None:
    """A class or a Secret may be called 42424."""
    given = ",".join(f"{name}=42424" for name in names.split())
    objects = helm.objects("--set", settings, "--set-string", given)
    assert leaves([*objects]).count("42424") >= len(names.split())
    assert 42424 not in leaves([*objects])


def test_an_ingress_may_have_all_hosts_of_a_domain() -> None:
    """The schema takes `*`, which begins an alias of YAML."""
    ingress = "dynadmin.ingress.enabled=true,dynadmin.ingress.host=*.example.com,dynadmin.ingress.tlsSecret=t"
    (made,) = helm.of_kind(helm.objects("--set", f"dynadmin.enabled=true,{ingress}"), "Ingress")
    assert [made["spec"]["rules"][0]["host"]] == made["spec"]["tls"][0]["hosts"] == ["*.example.com"]


def test_services_have_the_families_of_the_values() -> None:
    def policies(*settings: str) -> list[str | None]:
        objects = helm.objects("--set", ",".join(("dynadmin.enabled=true", *settings)))
        return [each["spec"].get("ipFamilyPolicy") for each in helm.of_kind(objects, "Service")]

    assert policies() == [None] * 6
    assert policies("ipFamilyPolicy=PreferDualStack") == ["PreferDualStack"] * 6


def test_a_rendering_is_the_same_twice() -> None:
    values = helm.PLATFORM / "ci" / "tuned.yaml"
    assert helm.template("--values", values) == helm.rendering(values)


def test_operators_of_the_settings_are_added_to_the_services() -> None:
    """They replaced them, and the webhooks took the platform's own writes for those of users."""
    objects = helm.objects("--set", "config.platform.admission.operators={system:serviceaccount:a:b}")
    config = yaml.safe_load(helm.one(objects, "ConfigMap", "config")["data"]["config.yaml"])
    operators = config["platform"]["admission"]["operators"]
    assert {"system:serviceaccount:a:b", "system:serviceaccount:dynamo-system:dynamo-platform-scaler"} <= {*operators}


def test_templates_ask_the_cluster_nothing_and_roll_no_dice() -> None:
    for file in helm.PLATFORM.rglob("templates/**/*"):
        for action in re.findall(r"{{.*?}}", file.read_text()) if file.is_file() else ():
            assert not re.search(r"\b(lookup|rand\w+|gen[A-Z]\w+|uuidv4|now)\b", action), (file, action)


def test_the_users_of_nats_are_in_an_entry_of_their_release(tmp_path: Path) -> None:
    """So that servers are replaced, and wait for the Job, when a user is added, passwords rotate, or a release changes what
    users may do: a server reads that once, when it starts.
    """

    def entry(*settings: str, chart: Path = helm.PLATFORM) -> str:
        objects = helm.objects(*(part for each in settings for part in ("--set", each)), chart=chart)
        (server,) = (pod for name, pod in helm.pods(objects) if name == "StatefulSet dynamo-platform-nats")
        (users,) = (each["secret"] for each in server["volumes"] if each["name"] == "users")
        ((key, path),) = (each.values() for each in users["items"])
        assert (users["secretName"], path) == ("dynamo-platform-nats-authorization", "authorization.conf")
        for each in helm.of_kind(objects, "ConfigMap"):
            if specification := each["data"].get("credentials.yaml"):
                assert yaml.safe_load(specification)["natsAuthorizationEntry"] == key, "the Job creates it"
        return str(key)

    later = tmp_path / helm.PLATFORM.name
    shutil.copytree(helm.PLATFORM, later)
    about = later / "Chart.yaml"
    about.write_text(re.sub(r"(?m)^appVersion: .*$", 'appVersion: "9.9.9"', about.read_text()))
    entries = [
        entry(),
        entry("dynadmin.enabled=true"),
        entry("credentials.rotation=now"),
        entry("nats.users={dynamoctl}"),
        entry(chart=later),
        entry("image.tag=9.9.8"),
        entry(f"image.digest=sha256:{'1' * 64}"),
    ]
    assert len(set(entries)) == 7
    assert entry("nats.resources.limits.memory=2Gi") == entries[0]
    assert entry("credentials.mode=given") == "authorization.conf"


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (("--set-string", "1Gi"), "966367641"),
        (("--set-string", "1.5G"), "1350000000"),
        (("--set-json", "1073741824"), "966367641"),
        (("--set-json", "null"), None),
    ],
)
@pytest.mark.parametrize("server", ["nats", "etcd"])
def test_servers_collect_garbage_before_their_memory_ends(
    server: str, limit: tuple[str, str], expected: str | None
) -> None:
    """NATS took 1.3 GiB at 10,000 graphs, of the 1 GiB that it may."""
    option, quantity = limit
    rendered = helm.objects(option, f"{server}.resources.limits.memory={quantity}")
    (container,) = helm.one(rendered, "StatefulSet", server)["spec"]["template"]["spec"]["containers"]
    environment = {each["name"]: each.get("value") for each in container["env"]}
    assert environment.get("GOMEMLIMIT") == expected


def test_definitions_are_kept_and_complete() -> None:
    results = helm.objects(chart=helm.CRDS, release="dynamo-crds")
    assert len(results) == 10
    assert {each["metadata"]["annotations"]["helm.sh/resource-policy"] for each in results} == {"keep"}
    services = {
        each["spec"]["conversion"]["webhook"]["clientConfig"]["service"]["name"]
        for each in results
        if "conversion" in each["spec"]
    }
    assert services == {"dynamo-platform-admission"}


def test_without_conversion_versions_that_differ_are_not_served() -> None:
    for each in helm.objects("--set", "conversion.enabled=false", chart=helm.CRDS, release="dynamo-crds"):
        assert "conversion" not in each["spec"]
        needed = definition_of(each["spec"]["names"]["kind"]).is_converted
        assert all(version["served"] == (version["storage"] or not needed) for version in each["spec"]["versions"])
