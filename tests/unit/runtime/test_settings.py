"""Settings: the reference's file is read, variables override it, and all errors are reported at once."""

import pytest
from dynamo_shared.runtime import InvalidSettings, load_settings
from dynamo_shared.runtime.leasing.standby import stands_by
from dynamo_shared.runtime.settings.older_names import OLDER_NAMES
from dynamo_shared.runtime.settings.operator import Checkpoint
from pydantic import ValidationError

HEAD = "apiVersion: operator.config.dynamo.nvidia.com/v1alpha1\nkind: OperatorConfiguration\n"


def written(tmp_path, text: str):
    file = tmp_path / "config.yaml"
    file.write_text(HEAD + text)
    return file


def test_defaults_are_the_references():
    settings = load_settings()
    assert (settings.server.metrics.port, settings.server.health_probe.port) == (8080, 8081)
    assert settings.discovery.backend == "kubernetes"
    assert settings.orchestrators.grove.enabled is None
    assert settings.orchestrators.grove.termination_delay == 15 * 60
    assert settings.service_mesh.istio.insecure_skip_verify is True
    assert settings.platform.nats.servers == ("nats://127.0.0.1:4222",)


def test_a_file_of_the_reference_is_read(tmp_path):
    file = written(
        tmp_path,
        """
server: {}
leaderElection: {enabled: false, id: dynamo.nvidia.com, namespace: dynamo-system}
orchestrators: {kaiScheduler: {enabled: false}, grove: {terminationDelay: 1h30m}}
infrastructure: {natsAddress: "nats://n:4222", modelExpressURL: "http://m"}
mpi: {sshSecretName: s, sshSecretNamespace: ns}
ingress: {}
security: {enableHTTP2: false}
""",
    )
    settings = load_settings(file)
    assert settings.infrastructure.nats_address == "nats://n:4222"
    assert settings.infrastructure.model_express_url == "http://m"
    assert settings.orchestrators.grove.termination_delay == 5400


def test_a_file_of_a_later_reference_is_read(tmp_path):
    file = written(
        tmp_path,
        """
orchestrators: {volcanoScheduler: {enabled: false}}
serviceMesh:
  enabled: false
  provider: istio
  istio: {tlsMode: MUTUAL, clientCertificate: /c, privateKey: /k, caCertificates: /a}
checkpoint: {cleanupImage: "busybox:1.36"}
""",
    )
    settings = load_settings(file)
    assert settings.orchestrators.volcano_scheduler.enabled is False
    assert (settings.service_mesh.enabled, settings.service_mesh.istio.ca_certificates) == (False, "/a")
    assert [each.partition(" is ignored")[0] for each in settings.ignored] == ["checkpoint.cleanupImage"]


@pytest.mark.parametrize(
    ("given", "ignored"),
    [("enabled: false", []), ("enabled: true", ["lpx"]), ("modelRegistryURL: /models", ["lpx.modelRegistryURL"])],
)
def test_lpu_settings_of_dynamo_1_6_are_accepted_and_ignored(tmp_path, given: str, ignored: list[str]) -> None:
    settings = load_settings(written(tmp_path, f"lpx: {{{given}}}\n"))
    assert [each.partition(" is ignored")[0] for each in settings.ignored if each.startswith("lpx")] == ignored


@pytest.mark.parametrize(("address", "ignored"), [("0.0.0.0", False), ("127.0.0.1", True)])
def test_the_second_address_of_the_webhook_is_ignored(tmp_path, address: str, ignored: bool) -> None:
    """The operator reads it, too, but listens on the first one."""
    settings = load_settings(written(tmp_path, f"server: {{webhook: {{bindAddress: {address}, host: 0.0.0.0}}}}\n"))
    assert settings.server.webhook.host == "0.0.0.0"
    assert any(each.startswith("server.webhook.bindAddress is ignored") for each in settings.ignored) is ignored


def test_variables_override_the_file(tmp_path):
    file = written(tmp_path, "platform: {clusterName: file, workers: 3}\n")
    settings = load_settings(
        file,
        {
            "DYNAMO_PLATFORM__CLUSTER_NAME": "variable",
            "DYNAMO_PLATFORM__NATS__SERVERS": "nats://a:1, nats://b:2",
            "DYNAMO_PLATFORM__ETCD__ENDPOINTS": '["http://e:2379"]',
            "DYNAMO_SERVER__METRICS__SECURE": "false",
            "DYNAMO_PORT": "8000",
            "PATH": "/bin",
        },
    )
    assert settings.platform.cluster_name == "variable"
    assert settings.platform.workers == 3
    assert settings.platform.nats.servers == ("nats://a:1", "nats://b:2")
    assert settings.platform.etcd.endpoints == ("http://e:2379",)
    assert settings.server.metrics.secure is False


def value_of(settings, path: str):
    for part in path.split("."):
        settings = settings.model_dump(by_alias=True)[part] if not isinstance(settings, dict) else settings[part]
    return settings


#: Settings that do not accept every text: the text, and the value.
VALUES = {
    "ADD_NAMESPACE_PREFIX_TO_IMAGE_NAME": ("true", True),
    "BENTO_IMAGE_BUILD_ENGINE": ("buildkit-rootless", "buildkit-rootless"),
    "BUILDKIT_URL": ("tcp://buildkitd:1234", "tcp://buildkitd:1234"),
    "DOCKER_REGISTRY_SECURE": ("false", False),
    "ESTARGZ_ENABLED": ("true", True),
    "YATAI_ENDPOINT": ("http://store", "http://store"),
}


def test_optional_settings_are_unset_by_an_empty_text(tmp_path):
    """`VARIABLE=` of an env file and `passwordFile: ""` in a template are not the file `.` in the working folder."""
    file = written(tmp_path, 'platform: {nats: {passwordFile: ""}, etcd: {passwordFile: p}}\n')
    settings = load_settings(
        file,
        {
            "DYNAMO_PLATFORM__ETCD__PASSWORD_FILE": "",
            "DYNAMO_PLATFORM__KUBERNETES__KUBECONFIG": "",
            "DYNAMO_PLATFORM__NATS__TLS__CA_FILE": "",
            "DYNAMO_PLATFORM__REPLICAS": "",
            "DYNAMO_ORCHESTRATORS__GROVE__ENABLED": "",
        },
    )
    platform = settings.platform
    assert (platform.nats.password_file, platform.etcd.password_file) == (None, None)
    assert (platform.kubernetes.kubeconfig, platform.nats.tls.ca_file, platform.replicas) == (None, None, None)
    assert settings.orchestrators.grove.enabled is None


@pytest.mark.parametrize("name", OLDER_NAMES)
def test_an_older_name_works_and_the_warning_gives_the_current_one(tmp_path, name):
    file = written(tmp_path, "logging: {level: error}\ningress: {hostSuffix: of-the-file}\n")
    text, value = VALUES.get(name, ("debug", "debug"))
    settings = load_settings(file, {name: text})
    assert [value_of(settings, path) for path in OLDER_NAMES[name]] == [value] * len(OLDER_NAMES[name])
    (warning,) = settings.older_names
    assert warning == f"{name} is deprecated; use the setting {' and '.join(OLDER_NAMES[name])}"
    assert load_settings(file, {name: ""}).older_names == ()


def test_the_current_variable_has_precedence_over_an_older_name():
    settings = load_settings(None, {"DYNAMO_INGRESS_SUFFIX": "old", "DYNAMO_INGRESS__HOST_SUFFIX": "new"})
    assert settings.ingress.host_suffix == "new"
    assert len(settings.older_names) == 1


def test_an_error_in_an_older_name_is_reported_under_that_name():
    with pytest.raises(
        InvalidSettings, match=r"logging\.level \(set by LOG_LEVEL\): Input should be 'debug', .* got 'loud'"
    ):
        load_settings(None, {"LOG_LEVEL": "loud"})


@pytest.mark.parametrize(("written_as", "level"), [("INFO", "info"), ("warn", "warning"), ("Debug", "debug")])
def test_log_levels_are_read_in_any_common_spelling(written_as, level):
    assert load_settings(None, {"LOG_LEVEL": written_as}).logging.level == level


def test_all_errors_are_reported_at_once_with_their_places(tmp_path):
    file = written(
        tmp_path,
        "server: {metrics: {port: 99999}}\nlogging: {level: loud}\nplatfrom: {}\n"
        "orchestrators: {grove: {terminationDelay: soon}}\n",
    )
    with pytest.raises(InvalidSettings) as caught:
        load_settings(file, {"DYNAMO_PLATFORM__WORKERS": "many"})
    text = str(caught.value)
    assert len(caught.value.mistakes) == 5
    assert f"{file}: server.metrics.port: " in text
    assert "logging.level: " in text
    assert "'debug'" in text
    assert "platfrom: unknown setting" in text
    assert "write a duration such as 30s" in text
    assert "platform.workers (set by DYNAMO_PLATFORM__WORKERS)" in text


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("kind: ConfigMap\n", "must have apiVersion"),
        ("a: [\n", "is not valid YAML: line 2, column 1: "),
        ('platform: {nats: {password: "hunter2}}', "is not valid YAML: line 1, column 39: "),
        ("- a\n", "must have apiVersion"),
    ],
)
def test_an_invalid_file_is_reported_without_its_content(tmp_path, text, says):
    file = tmp_path / "config.yaml"
    file.write_text(text)
    with pytest.raises(InvalidSettings, match=says) as caught:
        load_settings(file)
    assert "hunter2" not in str(caught.value)


def test_a_missing_file_is_reported(tmp_path):
    with pytest.raises(InvalidSettings, match="cannot be read: No such file"):
        load_settings(tmp_path / "none.yaml")


def test_a_secret_in_an_address_is_rejected_and_not_shown(tmp_path):
    settings = load_settings(written(tmp_path, "platform: {nats: {user: u, password: hunter2}}\n"))
    assert "hunter2" not in repr(settings)
    with pytest.raises(InvalidSettings, match="must not have a user name or password") as caught:
        load_settings(None, {"DYNAMO_PLATFORM__ETCD__ENDPOINTS": "http://u:hunter2@e:2379"})
    assert "hunter2" not in str(caught.value)
    with pytest.raises(InvalidSettings) as caught:
        load_settings(written(tmp_path, "platform: {nats: {password: [hunter2]}}\n"))
    assert "hunter2" not in str(caught.value)


REFUSED = {
    "leaderElection: {enabled: true}": "leaderElection.id is required",
    "namespace: {scope: {leaseDuration: 5s, leaseRenewInterval: 5s}}": "above 0 and shorter than leaseDuration",
    # The watcher would write each Lease again and again without any pause.
    "namespace: {scope: {leaseRenewInterval: 0s}}": "must be above 0 and shorter than leaseDuration",
    "platform: {nats: {tls: {certFile: a}}}": "certFile and keyFile must be set together",
    "platform: {nats: {servers: []}}": "platform.nats.servers",
    "serviceMesh: {provider: istio, istio: {tlsMode: MUTUAL}}": "requires clientCertificate and privateKey",
    "infrastructure: {tcpTLSCertPath: /c}": "tcpTLSCertPath and tcpTLSKeyPath must be set together",
    "infrastructure: {tcpTLSCertPath: /c, tcpTLSKeyPath: /k}": "tcpTLSCertPath requires infrastructure.tcpTLSCAPath",
    "infrastructure: {tcpTLSCAPath: /a}": "tcpTLSCAPath requires infrastructure.tcpTLSCertPath",
    "infrastructure: {tcpTLSClientCAPath: /a}": "tcpTLSClientCAPath requires infrastructure.tcpTLSCertPath",
    "infrastructure: {tcpTLSServerName: n}": "tcpTLSServerName requires infrastructure.tcpTLSCAPath",
    "infrastructure: {natsTLSClientCertPath: /c, natsTLSClientKeyPath: /k}": "requires infrastructure.natsTLSCAPath",
    "infrastructure: {natsTLSCAPath: /a, natsAddress: 'nats://n:4222'}": "requires a natsAddress that begins with tls://",
    # No agent has such storage.
    **{
        f"checkpoint: {{enabled: true, storage: {{type: {kind}}}}}": (
            f"type {kind} is not supported: snapshot agents store files on a volume"
        )
        for kind in ("s3", "oci")
    },
    "server: {webhook: {enabled: false}}": r"server.webhook.enabled must be true: .* run all services except admission",
}


@pytest.mark.parametrize(("text", "says"), REFUSED.items())
def test_contradicting_and_unsupported_settings_are_rejected(tmp_path, text, says):
    with pytest.raises(InvalidSettings, match=says):
        load_settings(written(tmp_path, text))


def test_settings_without_effect_are_named(tmp_path):
    file = written(
        tmp_path,
        """
security: {enableHTTP2: true}
leaderElection: {enabled: true, id: dynamo}
platform: {etcd: {endpoints: ["https://e:2379"]}}
checkpoint: {storage: {s3: {bucket: b}, oci: {registry: r}}}
""",
    )
    assert [each.partition(" is ignored")[0] for each in load_settings(file).ignored] == [
        "security.enableHTTP2",
        "leaderElection",
        "checkpoint.storage.s3",
        "checkpoint.storage.oci",
    ]
    assert load_settings().ignored == ()
    # Etcd splits the work over replicas. A single replica stands by, and is elected.
    elected = {"DYNAMO_LEADERELECTION__ENABLED": "true", "DYNAMO_PLATFORM__ETCD__ENDPOINTS": "http://etcd:2379"}
    elected["DYNAMO_LEADERELECTION__ID"] = "operator"
    assert len(load_settings(None, elected).ignored) == 1
    assert load_settings(None, {**elected, "DYNAMO_PLATFORM__REPLICAS": "1"}).ignored == ()


@pytest.mark.parametrize(("text", "stands"), [("", False), ("leaderElection: {enabled: true, id: dynamo}\n", True)])
def test_leader_election_means_standby_by_leases(tmp_path, text, stands):
    settings = load_settings(written(tmp_path, f"platform: {{kubernetes: {{context: c}}}}\n{text}"))
    assert stands_by(settings, {}) is stands


@pytest.mark.parametrize(
    ("claim", "message"),
    [
        ({"basePath": "/x"}, "pvcName is required"),
        ({"pvcName": "c", "basePath": "x"}, "basePath must be an absolute path"),
        ({"pvcName": "c", "basePath": "/x", "create": True}, "size is required"),
    ],
)
def test_an_incomplete_claim_is_rejected_if_it_is_used(claim: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        Checkpoint.model_validate({"enabled": True, "storage": {"type": "pvc", "pvc": claim}})
    for unused in ({"storage": {"type": "pvc", "pvc": claim}}, {"enabled": True, "storage": {"pvc": claim}}):
        assert Checkpoint.model_validate(unused).storage.pvc.create is claim.get("create", False)


def test_a_complete_claim_is_accepted() -> None:
    claim = {"pvcName": "c", "basePath": "/x", "create": True, "size": "1Ti"}
    result = Checkpoint.model_validate({"enabled": True, "storage": {"type": "pvc", "pvc": claim}})
    assert result.storage.pvc.size == "1Ti"
