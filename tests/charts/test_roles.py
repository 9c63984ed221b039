"""Roles and bindings: what each service may do, and where."""

from typing import Any

import pytest
import yaml
from dynamo_ctl.services import SERVICES
from dynamo_dynadmin.rights import AS_CALLERS
from dynamo_shared.api.rights import SECURE_METRICS, RightScope

from tests.charts import helm
from tools.generate.charts.rights import of_service, rules


def test_a_release_can_be_installed_without_roles() -> None:
    given = "rbac.create=false,metrics.secure=true,dynadmin.enabled=true,imageBuilder.enabled=true"
    kinds = {each["kind"] for each in helm.objects("--set", given)}
    assert {"ServiceAccount", "Job", "Pod"} <= kinds
    assert not kinds & {"Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"}


def test_the_view_role_covers_every_kind() -> None:
    objects = helm.rendered(helm.PLATFORM / "ci" / "default.yaml")
    readable = {each for rule in helm.one(objects, "ClusterRole", "view")["rules"] for each in rule["resources"]}
    kinds = {each["spec"]["names"]["plural"] for each in helm.objects(chart=helm.CRDS, release="dynamo-crds")}
    assert kinds <= readable


def test_roles_equal_the_declared_rights_of_the_services() -> None:
    objects = helm.rendered(helm.PLATFORM / "ci" / "default.yaml")
    cluster = {
        o["metadata"]["name"].rpartition("platform-")[2]: o["rules"] for o in helm.of_kind(objects, "ClusterRole")
    }
    own = {"$CLUSTER_ROLE": "dynamo-system-dynamo-platform-admission", "$SSH_SECRET": "mpi-run-ssh-secret"}
    for service in cluster.keys() & SERVICES.keys():
        held = [
            each
            for each in of_service(service)
            if each.scope in (RightScope.SERVED, RightScope.CLUSTER) and each.part != SECURE_METRICS
        ]
        granted = {_flat(rule) for rule in cluster[service]}
        declared = {(*rest, own.get(name, name)) for rule in rules(held) for *rest, name in _flat(rule)}
        assert frozenset().union(*granted) == declared


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ((), {"dynamo-platform-webhook", "mpi-run-ssh-secret"}),
        (("--set", "webhook.secretName=tls,config.mpi.sshSecretName=keys"), {"tls", "keys"}),
        (("--set", "config.server.webhook.secretName=tls"), {"tls", "mpi-run-ssh-secret"}),
    ],
)
def test_services_access_only_their_own_secrets(given: tuple[str, ...], names: set[str]) -> None:
    """Pull secrets need `list`, which ignores resource names; so does the creation of a Secret."""
    held = [
        rule
        for role in helm.of_kind(helm.objects(*given), "Role", "ClusterRole")
        if role["metadata"]["name"].rpartition("platform-")[2] in SERVICES
        for rule in role["rules"]
        if "secrets" in rule["resources"]
    ]
    named = {name for rule in held for name in rule.get("resourceNames", ())}
    assert named == names
    assert {verb for rule in held if "resourceNames" not in rule for verb in rule["verbs"]} == {"create", "list"}


@pytest.mark.parametrize(
    ("given", "prefix"),
    [
        ("clusterName=eu", "dynamo-eu"),
        ("nats.mode=existing,nats.existing.servers={tls://n},config.platform.clusterName=us", "dynamo-us"),
        ("config.leaderElection.enabled=true,config.leaderElection.id=mine", "mine"),
    ],
)
def test_services_elect_only_their_own_active_replica(given: str, prefix: str) -> None:
    """A service that wrote the Lease of another one could stop it."""
    objects = helm.objects("--set", f"etcd.mode=none,imageBuilder.enabled=true,{given}")
    names = {
        role["metadata"]["name"].rpartition("platform-")[2]: set(rule.get("resourceNames", ()))
        for role in helm.of_kind(objects, "Role")
        for rule in role["rules"]
        if "leases" in rule["resources"] and "update" in rule["verbs"]
    }
    services = ("watcher", "pod-builder", "scaler", "image-builder")
    assert names == {
        **{each: {f"{prefix}-{each}"} for each in services},
        "model-discovery": {f"{prefix}-model-discovery", f"{prefix}-worker-discovery"},
        "planner": {f"{prefix}-planner-plans"},
        "profiler": {f"{prefix}-planner"},
    }


@pytest.mark.parametrize(("keys", "created"), [("", False), (",dynadmin.enabled=true", True)])
def test_the_job_of_credentials_accesses_only_secrets_that_it_creates(keys: str, created: bool) -> None:
    """A rule without names is for all Secrets of the namespace: the Job had it where it had nothing to create."""
    given = f"credentials.mode=cert-manager,nats.mode=existing,nats.existing.servers={{tls://n}}{keys}"
    made = [each for each in helm.objects("--set", given) if "-platform-credentials" in each["metadata"]["name"]]
    rules = [
        rule for role in helm.of_kind(tuple(made), "Role") for rule in role["rules"] if rule["verbs"] != ["create"]
    ]
    assert [rule["resourceNames"] for rule in rules] == [["dynamo-platform-dynadmin-session"]] * created
    assert bool(made) is created


def test_a_service_may_run_as_an_existing_account() -> None:
    """For example an account that a tool creates with cloud rights. All of the service's roles are bound to it."""
    objects = helm.objects("--set", "services.watcher.serviceAccountName=clouds")
    assert "dynamo-platform-watcher" not in {o["metadata"]["name"] for o in helm.of_kind(objects, "ServiceAccount")}
    assert helm.one(objects, "Deployment", "watcher")["spec"]["template"]["spec"]["serviceAccountName"] == "clouds"
    for kind in ("RoleBinding", "ClusterRoleBinding"):
        assert [each["name"] for each in helm.one(objects, kind, "watcher")["subjects"]] == ["clouds"]
    config = yaml.safe_load(helm.one(objects, "ConfigMap", "config")["data"]["config.yaml"])
    assert f"system:serviceaccount:{helm.NAMESPACE}:clouds" in config["platform"]["admission"]["operators"]


def _flat(rule: dict[str, Any]) -> frozenset[tuple[str, str, str, str]]:
    return frozenset(
        (group, resource, verb, name)
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
        for name in rule.get("resourceNames", ("",))
    )


def test_dynadmin_may_act_as_its_callers_and_services_may_bind_the_cluster_roles_of_the_settings() -> None:
    objects = helm.rendered(helm.PLATFORM / "ci" / "dynadmin.yaml")
    granted = {
        o["metadata"]["name"].rpartition("platform-")[2]: {each for rule in o["rules"] for each in _flat(rule)}
        for o in helm.of_kind(objects, "ClusterRole")
    }
    assert {verb for *_, verb, _ in granted["dynadmin"]} == {"impersonate", "create"}
    assert ("authentication.k8s.io", "userextras/example.org/tenant", "impersonate", "") in granted["dynadmin"]
    bound = {service: {name for *_, verb, name in rules_ if verb == "bind"} for service, rules_ in granted.items()}
    assert {service: names for service, names in bound.items() if names} == {
        "pod-builder": {"planner-pods", "epp-pods"},
        "profiler": {"profiling-jobs"},
    }


@pytest.mark.parametrize(
    ("settings", "constrained"),
    [
        (("--kube-version", "1.36.0"), True),
        (("--kube-version", "1.35.4"), False),
        (("--kube-version", "1.35.4", "--set", "dynadmin.constrainedImpersonation=true"), True),
        (("--kube-version", "1.36.0", "--set", "dynadmin.constrainedImpersonation=false"), False),
    ],
)
def test_users_are_impersonated_for_the_requests_of_dynadmin_only(settings: tuple[str, ...], constrained: bool) -> None:
    objects = helm.objects("--values", helm.PLATFORM / "ci" / "dynadmin.yaml", *settings)
    role = helm.one(objects, "ClusterRole", "dynadmin")
    granted = {each for rule in role["rules"] for each in _flat(rule)}
    plain = {resource for _, resource, verb, _ in granted if verb == "impersonate"}
    as_users = {resource for _, resource, verb, _ in granted if verb == "impersonate:user-info"}
    tenant = "userextras/example.org/tenant"
    assert ("users" in plain, tenant in plain) == (not constrained, not constrained)
    assert as_users == ({"users", "groups", "uids", tenant} if constrained else set())
    sent = {
        (resource, verb.rpartition(":")[2]) for _, resource, verb, _ in granted if verb.startswith("impersonate-on:")
    }
    requests = {(right.plural, verb) for right in AS_CALLERS for verb in right.verbs}
    assert sent == (requests if constrained else set())


def test_the_image_builder_may_run_jobs_only_in_its_namespace() -> None:
    objects = helm.rendered(helm.PLATFORM / "ci" / "image-builder.yaml")
    (namespace,) = helm.of_kind(objects, "Namespace")
    assert namespace["metadata"]["name"] == "images"
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    granted = {
        (o["kind"], o["metadata"].get("namespace", "")): {each[:3] for rule in o["rules"] for each in _flat(rule)}
        for o in helm.of_kind(objects, "ClusterRole", "Role")
        if o["metadata"]["name"].endswith("platform-image-builder")
    }
    declared = [each for each in of_service("image-builder") if each.scope is RightScope.BUILDS]
    assert granted["Role", "images"] == {each[:3] for rule in rules(declared) for each in _flat(rule)}
    assert not any(resource in ("jobs", "pods") for _, resource, _ in granted["ClusterRole", ""])


def test_namespace_mode_creates_no_cluster_roles() -> None:
    objects = helm.rendered(helm.PLATFORM / "ci" / "namespaces.yaml")
    assert helm.of_kind(objects, "ClusterRole", "ClusterRoleBinding") == []
    namespaces = {o["metadata"]["namespace"] for o in helm.of_kind(objects, "Role")}
    assert namespaces == {"team-a", "team-b", helm.NAMESPACE}
