"""Renderings of the charts: each equals its golden file, and all of them follow common rules."""

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
    """All scalars in a value."""
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
def test_every_object_has_the_labels_of_its_release(values: Path) -> None:
    for each in helm.rendered(values):
        if each["metadata"]["name"] in ("dynamo-platform-extra", "written-as-text"):
            continue
        result = each["metadata"]["labels"]
        assert result["app.kubernetes.io/instance"] == helm.RELEASE
        assert result["app.kubernetes.io/part-of"] == "dynamo-platform"


@each_file
def test_names_of_objects_are_unique(values: Path) -> None:
    names = [(o["kind"], o["metadata"].get("namespace"), o["metadata"]["name"]) for o in helm.rendered(values)]
    assert len(names) == len(set(names))


@each_file
def test_pods_meet_restricted_pod_security_and_mount_only_tokens_that_they_need(values: Path) -> None:
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
def test_the_platform_accepts_the_rendered_configuration(values: Path, tmp_path: Path) -> None:
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
        ("config.platform.tracing.otlpEndpoint=collector:4318", "watcher", {4318}),
        ("dynadmin.oidc.issuer=http://10.0.0.5:8080", "dynadmin", {8080}),
        ("dynadmin.oidc.issuer=https://a,dynadmin.oidc.jwksUri=https://b:8443/keys", "dynadmin", {443, 8443}),
        ("dynadmin.oidc.issuer=https://a,dynadmin.oidc.jwksUri=https://b:8443?p=a", "dynadmin", {443, 8443}),
    ],
)
def test_network_policies_open_the_ports_of_configured_addresses(settings: str, service: str, ports: set[int]) -> None:
    """Digits at the end of a name are not a port."""
    given = f"{settings},dynadmin.enabled=true,dynadmin.oidc.audience=dynamo"
    policy = helm.one(helm.objects("--set", given), "NetworkPolicy", service)
    reached = {port["port"] for rule in policy["spec"]["egress"] for port in rule.get("ports", ())}
    # DNS, the API server, and if the address belongs to another release, also the NATS and etcd of this release.
    assert ports <= reached <= ports | {53, 5353, 443, 6443, 4222, 2379}


@pytest.mark.parametrize(("server", "port"), [("nats", 8222), ("etcd", 2381)])
@pytest.mark.parametrize(("values", "who"), [("default", None), ("monitoring", "monitoring")])
def test_only_configured_clients_reach_the_monitoring_of_nats_and_etcd(
    values: str, who: str | None, server: str, port: int
) -> None:
    """It has no login and no limit of connections. That of NATS lists connections, inboxes and the filters of consumers,
    which name graphs of all namespaces; /health of etcd costs a read by all members.
    """
    policy = helm.one(helm.rendered(helm.PLATFORM / "ci" / f"{values}.yaml"), "NetworkPolicy", server)
    rules = [rule for rule in policy["spec"]["ingress"] if {"port": port, "protocol": "TCP"} in rule["ports"]]
    peers = [peer["namespaceSelector"]["matchLabels"] for rule in rules for peer in rule["from"]]
    assert peers == ([{"kubernetes.io/metadata.name": who}] if who else [])


@pytest.mark.parametrize(
    ("settings", "peers"),
    [
        ("dynadmin.enabled=true", []),
        ("networkPolicy.webhookFrom[0].ipBlock.cidr=10.0.0.0/28", [{"ipBlock": {"cidr": "10.0.0.0/28"}}]),
    ],
)
def test_the_webhooks_accept_only_configured_clients(settings: str, peers: list[dict[str, object]]) -> None:
    policy = helm.one(helm.objects("--set", settings), "NetworkPolicy", "admission")
    (rule,) = (rule for rule in policy["spec"]["ingress"] if {"port": "webhook", "protocol": "TCP"} in rule["ports"])
    assert rule.get("from", []) == peers


def test_only_configured_clients_connect_to_nats() -> None:
    """A tenant may give any label to a pod."""
    given = "networkPolicy.eventsFrom[0].namespaceSelector.matchLabels.team=integrators"
    policy = helm.one(helm.objects("--set", given), "NetworkPolicy", "nats")
    (rule,) = (rule for rule in policy["spec"]["ingress"] if {"port": 4222, "protocol": "TCP"} in rule["ports"])
    assert [peer["namespaceSelector"] for peer in rule["from"] if "namespaceSelector" in peer] == [
        {"matchLabels": {"team": "integrators"}}
    ]


@pytest.mark.parametrize(("settings", "duration"), [((), "87600h"), (("credentials.issuerRef.name=own",), "2160h")])
def test_the_certificate_of_nats_is_long_lived_because_no_renewal_restarts_nats(
    settings: tuple[str, ...], duration: str
) -> None:
    values = ("--values", helm.PLATFORM / "ci" / "cert-manager.yaml")
    objects = helm.objects(*values, *(part for each in settings for part in ("--set", each)))
    certificates = helm.of_kind(objects, "Certificate")
    durations = {each["metadata"]["name"]: each["spec"]["duration"] for each in certificates}
    assert durations["dynamo-platform-nats-server"] == duration
    assert durations["dynamo-platform-watcher-etcd"] == durations["dynamo-platform-webhook"] == "2160h"


def test_user_ids_can_be_left_to_the_cluster() -> None:
    """OpenShift rejects users and groups outside the namespace's range."""
    for name, pod in helm.pods(helm.objects("--set", "runAsUser=null")):
        assert not {"runAsUser", "runAsGroup", "fsGroup"} & pod["securityContext"].keys(), name


def test_all_images_come_from_the_mirror() -> None:
    """This includes the images that the platform itself runs: for the trial, for builds, and to fetch archives."""
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


def test_a_mirror_replaces_the_registry_in_a_repository() -> None:
    objects = helm.objects("--set", "global.imageRegistry=mirror.example,image.repository=r.example:5000/team/platform")
    images = {each["image"] for _, pod in helm.pods(objects) for each in pod["containers"]}
    assert "mirror.example/team/platform" in {each.rpartition(":")[0] for each in images}


def test_the_image_of_the_trial_may_be_a_string_as_in_older_values() -> None:
    objects = helm.objects("--set", "tests.image=own.example/vllm:1,global.imageRegistry=mirror.example")
    (trial,) = (pod for name, pod in helm.pods(objects) if name.startswith("Pod "))
    assert "--image=own.example/vllm:1" in trial["containers"][0]["args"]


def test_the_image_of_buildkit_comes_from_the_settings() -> None:
    values = yaml.safe_load((helm.PLATFORM / "values.yaml").read_text())["imageBuilder"]["buildkitImage"]
    assert "{registry}/{repository}:{tag}".format(**values) == ImageBuilder().buildkit.image


def test_services_reach_dns_and_the_collector_of_traces() -> None:
    """DNS of OpenShift listens on 5353, and network policies apply to the port of the pod."""
    policies = helm.of_kind(helm.rendered(helm.PLATFORM / "ci" / "settings.yaml"), "NetworkPolicy")
    reached = {
        policy["metadata"]["name"].removeprefix("dynamo-platform-"): {
            port["port"] for rule in policy["spec"]["egress"] for port in rule.get("ports", ())
        }
        for policy in policies
    }
    assert {name for name, ports in reached.items() if {53, 5353} <= ports} == reached.keys()
    assert {name for name, ports in reached.items() if 4318 in ports} == {*SERVICES} & reached.keys()


def test_secrets_of_cert_manager_and_of_the_job_have_the_same_labels() -> None:
    """docs/uninstall.md deletes Secrets by their labels."""
    certificates = helm.of_kind(helm.rendered(helm.PLATFORM / "ci" / "cert-manager.yaml"), "Certificate")
    labels = [each["spec"].get("secretTemplate", {}).get("labels", {}) for each in certificates]
    assert certificates
    assert {each.get("app.kubernetes.io/part-of") for each in labels} == {"dynamo-platform"}


def test_labels_in_the_values_cannot_override_selector_labels() -> None:
    given = {"app.kubernetes.io/part-of": "suite", "app.kubernetes.io/component": "x", "team": "a"}
    text = helm.template("--set-json", f"commonLabels={json.dumps(given)}", "--set", "defaults.podLabels.team=b")
    for each in filter(None, yaml.load_all(text, UniqueKeys)):
        assert each["metadata"]["labels"]["app.kubernetes.io/part-of"] == "dynamo-platform"
        if each["kind"] == "Deployment":
            template = each["spec"]["template"]["metadata"]["labels"]
            assert each["spec"]["selector"]["matchLabels"].items() <= template.items()
            assert template["team"] == "b"


class UniqueKeys(yaml.SafeLoader):
    """A parser that rejects duplicate keys, as kustomize and Flux do."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """The mapping; an AssertionError if a key occurs twice."""
        keys = [key.value for key, _ in node.value]
        assert len(keys) == len(set(keys)), keys
        return super().construct_mapping(node, deep)


def test_a_null_budget_in_the_values_removes_it_as_described() -> None:
    described = (helm.PLATFORM / "values.yaml").read_text().partition("  podDisruptionBudget:")[0].splitlines()[-1]
    assert "null, in place of the whole: no budget" in described
    objects = helm.objects("--set", "defaults.podDisruptionBudget=null")
    budgets = helm.of_kind(objects, "PodDisruptionBudget")
    assert {each["metadata"]["name"] for each in budgets} == {"dynamo-platform-nats", "dynamo-platform-etcd"}


def test_the_budget_of_one_service_can_allow_all_evictions_as_described() -> None:
    """Helm drops a service's null before the templates receive the values."""
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
def test_the_budget_of_an_autoscaled_service_depends_on_the_autoscalers_limits(
    settings: str, budget: dict[str, int] | None
) -> None:
    """The replicas in the values are not those of the Deployment. A budget that no pod may leave blocks node drains."""
    objects = helm.objects("--set", f"services.admission.autoscaling.enabled=true{settings}")
    made = {each["metadata"]["name"]: each["spec"] for each in helm.of_kind(objects, "PodDisruptionBudget")}
    rendered = made.get("dynamo-platform-admission")
    assert (
        rendered and {key: rendered[key] for key in ("minAvailable", "maxUnavailable") if key in rendered}
    ) == budget


def test_the_budget_of_a_service_overrides_the_default() -> None:
    given = "defaults.podDisruptionBudget.minAvailable=1,services.watcher.podDisruptionBudget.maxUnavailable=2"
    objects = helm.objects("--set", given)
    of = {name: helm.one(objects, "PodDisruptionBudget", name)["spec"] for name in ("watcher", "scaler")}
    assert {"minAvailable", "maxUnavailable"} & of["watcher"].keys() == {"maxUnavailable"}
    assert {"minAvailable", "maxUnavailable"} & of["scaler"].keys() == {"minAvailable"}


def test_the_kubelet_does_not_evict_nats_without_a_volume() -> None:
    """Without a limit of its own it uses up to three quarters of the node's disk, and its emptyDir may have 10Gi."""
    objects = helm.objects("--set", "nats.persistence.enabled=false")
    assert "max_file_store: 10G\n" in helm.one(objects, "ConfigMap", "nats")["data"]["nats.conf"]


def test_streams_fit_into_the_smallest_volume() -> None:
    """On a volume of 2Gi NATS created no stream (error 10047), and the watcher did not start."""
    taken = sum(each.max_bytes for each in streams.ALL)
    assert f"(lt $bytes {taken})" in (helm.PLATFORM / "templates" / "_helpers.tpl").read_text()
    rendered = helm.rendered(helm.PLATFORM / "ci" / "small.yaml")
    configuration = helm.one(rendered, "ConfigMap", "nats")["data"]["nats.conf"]
    assert "max_file_store: 6G\n" in configuration
    assert taken < 6 * 10**9


def test_a_service_that_is_also_a_listed_user_of_nats_has_one_password() -> None:
    objects = helm.objects("--set", "dynadmin.enabled=true,nats.users={integrator,dynadmin,integrator}")
    specified = yaml.safe_load(helm.one(objects, "ConfigMap", "credentials")["data"]["credentials.yaml"])
    names = [each["service"] for each in specified["users"]]
    assert len(names) == len(set(names))
    assert {"dynadmin", "integrator", "watcher"} <= set(names)


def test_labels_and_annotations_of_the_namespace_of_builds_are_not_mixed_up() -> None:
    values = ("--values", helm.PLATFORM / "ci" / "image-builder.yaml")
    objects = helm.objects(*values, "--set-json", 'commonAnnotations={"example.com/labels": "a"}')
    (namespace,) = helm.of_kind(objects, "Namespace")
    assert namespace["metadata"]["annotations"] == {"example.com/labels": "a"}
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"


def test_the_certificate_of_the_webhooks_is_in_the_configured_secret() -> None:
    values = ("--values", helm.PLATFORM / "ci" / "cert-manager.yaml")
    objects = helm.objects(*values, "--set", "config.server.webhook.secretName=tls")
    volumes = helm.one(objects, "Deployment", "admission")["spec"]["template"]["spec"]["volumes"]
    assert "tls" in {each["spec"]["secretName"] for each in helm.of_kind(objects, "Certificate")}
    assert "tls" in {each["secret"]["secretName"] for each in volumes if "secret" in each}


def test_pods_that_run_a_command_are_scheduled_like_the_services() -> None:
    """`helm test` hung in a cluster where every node has a taint; an injected sidecar keeps a Job from completing."""
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


def test_pods_that_run_a_command_go_to_the_nodes_of_the_services_and_next_to_any_pod() -> None:
    term = {"matchExpressions": [{"key": "platform", "operator": "Exists"}]}
    nodes = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    apart = {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone", "labelSelector": {}}]}
    affinity = json.dumps({"nodeAffinity": nodes, "podAntiAffinity": apart})
    objects = helm.objects(
        "--values", helm.PLATFORM / "ci" / "tuned.yaml", "--set-json", f"defaults.affinity={affinity}"
    )
    commands = [pod for name, pod in helm.pods(objects) if name.startswith(("Job", "Pod"))]
    assert [each["affinity"] for each in commands] == [{"nodeAffinity": nodes}] * 3


def test_fields_that_the_values_add_reach_every_pod_spec() -> None:
    pods = dict(helm.pods(helm.rendered(helm.PLATFORM / "ci" / "tuned.yaml")))
    for name, pod in pods.items():
        assert pod["dnsConfig"] == {"options": [{"name": "ndots", "value": "2"}]}, name
        assert pod["schedulerName"] == "default-scheduler", name
        assert ("hostAliases" in pod) is name.endswith("admission"), name


def test_webhooks_on_the_host_network_free_their_port_before_new_pods_start() -> None:
    objects = helm.objects("--set", "services.admission.podSpec.hostNetwork=true")
    admission = helm.one(objects, "Deployment", "admission")["spec"]
    assert admission["template"]["spec"]["hostNetwork"] is True
    assert admission["strategy"]["rollingUpdate"] == {"maxUnavailable": 1, "maxSurge": 0}


def test_servers_are_scheduled_and_labelled_by_their_values() -> None:
    """Labels keep out a mesh's proxy, which breaks the TLS between members; affinity spreads members over zones."""
    tuned, default = (helm.rendered(helm.PLATFORM / "ci" / f"{name}.yaml") for name in ("tuned", "default"))
    servers = {each["metadata"]["name"]: each["spec"]["template"] for each in helm.of_kind(tuned, "StatefulSet")}
    nats, etcd = servers["dynamo-nats"], servers["dynamo-etcd"]
    for each in (nats, etcd):
        assert each["metadata"]["labels"]["sidecar.example.com/inject"] == "false"
    assert "requiredDuringSchedulingIgnoredDuringExecution" in nats["spec"]["affinity"]["podAntiAffinity"]
    assert [each["whenUnsatisfiable"] for each in etcd["spec"]["topologySpreadConstraints"]] == ["DoNotSchedule"]
    (preferred,) = helm.one(default, "StatefulSet", "nats")["spec"]["template"]["spec"]["affinity"]["podAntiAffinity"]
    assert preferred == "preferredDuringSchedulingIgnoredDuringExecution"


def test_pods_that_run_a_command_declare_resources_because_a_quota_may_require_them() -> None:
    objects = helm.objects("--set", "commands.resources.limits.cpu=1")
    commands = [pod for name, pod in helm.pods(objects) if name.startswith(("Job", "Pod"))]
    limits = [container["resources"]["limits"] for pod in commands for container in pod["containers"]]
    assert limits == [{"cpu": 1, "memory": "256Mi"}] * 3


@each_file
def test_numeric_names_stay_strings(values: Path) -> None:
    """A namespace may be called 20260, and the API server rejects a number as a name or a label."""
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
def test_numeric_names_in_the_values_stay_strings(settings: str, names: str) -> None:
    """A class or a Secret may be called 42424."""
    given = ",".join(f"{name}=42424" for name in names.split())
    objects = helm.objects("--set", settings, "--set-string", given)
    assert leaves([*objects]).count("42424") >= len(names.split())
    assert 42424 not in leaves([*objects])


def test_an_ingress_may_have_a_wildcard_host() -> None:
    """The schema accepts `*`, which starts an alias in YAML."""
    ingress = "dynadmin.ingress.enabled=true,dynadmin.ingress.host=*.example.com,dynadmin.ingress.tlsSecret=t"
    (made,) = helm.of_kind(helm.objects("--set", f"dynadmin.enabled=true,{ingress}"), "Ingress")
    assert [made["spec"]["rules"][0]["host"]] == made["spec"]["tls"][0]["hosts"] == ["*.example.com"]


def test_services_have_the_ip_families_of_the_values() -> None:
    def policies(*settings: str) -> list[str | None]:
        objects = helm.objects("--set", ",".join(("dynadmin.enabled=true", *settings)))
        return [each["spec"].get("ipFamilyPolicy") for each in helm.of_kind(objects, "Service")]

    assert policies() == [None] * 6
    assert policies("ipFamilyPolicy=PreferDualStack") == ["PreferDualStack"] * 6


def test_rendering_is_deterministic() -> None:
    values = helm.PLATFORM / "ci" / "tuned.yaml"
    assert helm.template("--values", values) == helm.rendering(values)


def test_operators_of_the_settings_are_added_to_the_services() -> None:
    """They replaced the service accounts, and the webhooks mistook the platform's own writes for those of users."""
    objects = helm.objects("--set", "config.platform.admission.operators={system:serviceaccount:a:b}")
    config = yaml.safe_load(helm.one(objects, "ConfigMap", "config")["data"]["config.yaml"])
    operators = config["platform"]["admission"]["operators"]
    assert {"system:serviceaccount:a:b", "system:serviceaccount:dynamo-system:dynamo-platform-scaler"} <= {*operators}


def test_templates_use_neither_lookups_nor_random_values() -> None:
    for file in helm.PLATFORM.rglob("templates/**/*"):
        for action in re.findall(r"{{.*?}}", file.read_text()) if file.is_file() else ():
            assert not re.search(r"\b(lookup|rand\w+|gen[A-Z]\w+|uuidv4|now)\b", action), (file, action)


def test_the_users_of_nats_are_stored_under_a_key_that_changes_with_them(tmp_path: Path) -> None:
    """A server reads users' rights once, when it starts. When a user is added, passwords rotate, or a release changes
    rights, the changed entry replaces the servers, and they wait for the Job.
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
def test_servers_collect_garbage_before_they_reach_their_memory_limit(
    server: str, limit: tuple[str, str], expected: str | None
) -> None:
    """At 10,000 graphs NATS used 1.3 GiB, although its limit was 1 GiB."""
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


def test_without_conversion_only_the_storage_version_of_differing_kinds_is_served() -> None:
    for each in helm.objects("--set", "conversion.enabled=false", chart=helm.CRDS, release="dynamo-crds"):
        assert "conversion" not in each["spec"]
        needed = definition_of(each["spec"]["names"]["kind"]).is_converted
        assert all(version["served"] == (version["storage"] or not needed) for version in each["spec"]["versions"])
