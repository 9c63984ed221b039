"""TLS of the infrastructure, with the names of the operator's 1.5 configuration: variables of main containers."""

import pytest
from dynamo_pod_builder.configuration import render_config
from dynamo_pod_builder.render.pod.env import standard
from dynamo_shared.runtime.settings import Settings

FILES = {
    "natsTLSCAPath": "NATS_TLS_CA_CERT_PATH",
    "natsTLSClientCertPath": "NATS_TLS_CLIENT_CERT_PATH",
    "natsTLSClientKeyPath": "NATS_TLS_CLIENT_KEY_PATH",
    "tcpTLSCertPath": "DYN_TCP_TLS_CERT_PATH",
    "tcpTLSKeyPath": "DYN_TCP_TLS_KEY_PATH",
    "tcpTLSCAPath": "DYN_TCP_TLS_CA_CERT_PATH",
    "tcpTLSClientCertPath": "DYN_TCP_TLS_CLIENT_CERT_PATH",
    "tcpTLSClientKeyPath": "DYN_TCP_TLS_CLIENT_KEY_PATH",
    "tcpTLSClientCAPath": "DYN_TCP_TLS_CLIENT_CA_CERT_PATH",
    "tcpTLSServerName": "DYN_TCP_TLS_SERVER_NAME",
}


def variables(infrastructure: dict[str, str]) -> dict[str, str]:
    settings = Settings.model_validate({"infrastructure": infrastructure})
    return {each["name"]: each["value"] for each in standard(render_config(settings, lambda _: False, {}))}


def test_each_setting_is_a_variable() -> None:
    given = {setting: f"/tls/{setting}" for setting in FILES}
    made = variables({"natsAddress": "tls://nats:4222", **given})
    assert made == {"NATS_SERVER": "tls://nats:4222", **{name: given[setting] for setting, name in FILES.items()}}


@pytest.mark.parametrize("infrastructure", [{}, dict.fromkeys(FILES, "")])
def test_without_settings_there_are_no_variables(infrastructure: dict[str, str]) -> None:
    assert variables(infrastructure) == {}
