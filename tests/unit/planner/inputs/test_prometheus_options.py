from pathlib import Path

import pytest
from dynamo_planner.inputs import InputError
from dynamo_planner.inputs.prometheus.options import prometheus_options
from dynamo_shared.api.contracts.planner import PlannerConfig
from dynamo_shared.runtime.settings.planner import Prometheus

OWN = "http://prometheus.monitoring:9090"
THEIRS = "https://metrics.team-a:9090"


def options(settings=None, infrastructure=OWN, **fields):
    named = {f"metric_pulling_prometheus_{name}": value for name, value in fields.items()}
    return prometheus_options(PlannerConfig.model_validate(named), settings or Prometheus(), infrastructure)


def test_the_platform_sets_the_address_of_prometheus():
    assert options().url == OWN
    assert options(Prometheus(endpoint="http://other:9090/")).url == "http://other:9090"


def test_a_graph_may_name_its_own_prometheus():
    assert options(endpoint=THEIRS).url == THEIRS


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1:9090",
        "169.254.169.254",
        "[::1]:9090",
        "[::ffff:169.254.169.254]",
        "[64:ff9b::a9fe:a9fe]",
        "[2002:7f00:1::]",
        "[fe80::1%25eth0]",
        "[fd00:ec2::254]",
        "0.0.0.0",
        "10.96.0.1",
        "NATS.dynamo.svc:4222",
    ],
)
def test_a_graph_may_not_name_this_host_a_metadata_service_or_the_platform(host: str):
    config = PlannerConfig(metric_pulling_prometheus_endpoint=f"http://{host}")
    with pytest.raises(InputError, match=r"this host|platform itself|no address"):
        prometheus_options(config, Prometheus(), OWN, frozenset({"10.96.0.1", "nats.dynamo.svc"}))


def test_the_platforms_own_prometheus_may_be_anywhere():
    assert options(infrastructure="http://127.0.0.1:9090", endpoint="http://127.0.0.1:9090/").url.endswith(".1:9090")


def test_a_plan_does_not_change_the_query_options_of_the_platforms_prometheus():
    settings = Prometheus(extra_query_params={"tenant": "us"})
    named = {"extra_query_params": {"tenant": "them", "dedup": "true"}, "ssl_verify": False}
    asked = options(settings, **named)
    assert (asked.extra_params, asked.verify) == ({"tenant": "us", "dedup": "true"}, True)


def test_own_endpoints_of_graphs_can_be_disabled():
    with pytest.raises(InputError, match="ownEndpoints is false"):
        options(Prometheus(own_endpoints=False), endpoint=THEIRS)
    assert options(Prometheus(own_endpoints=False), endpoint=OWN + "/").url == OWN


def test_a_missing_address_is_an_error():
    with pytest.raises(InputError, match="no Prometheus is configured"):
        options(infrastructure="")


def test_the_platforms_token_is_sent_to_the_platforms_prometheus_only(tmp_path: Path):
    settings = Prometheus(token_file=tmp_path / "token", ca_file=tmp_path / "ca", extra_query_params={"tenant": "us"})
    assert options(settings).token_file == tmp_path / "token"
    assert options(settings).extra_params == {"tenant": "us"}
    own = options(settings, endpoint=THEIRS)
    assert own.token_file is None
    assert own.ca_file is None
    assert own.extra_params == {}
    assert options(settings, token="theirs").token_file is None


def test_files_are_read_from_one_folder_only(tmp_path: Path):
    with pytest.raises(InputError, match="filesDir is unset"):
        options(token_file="/etc/passwd")
    settings = Prometheus(files_dir=tmp_path)
    assert options(settings, token_file="team/token").token_file == tmp_path / "team" / "token"
    for outside in ("../secret", "/etc/passwd", "team/../../secret"):
        with pytest.raises(InputError, match="must be in"):
            options(settings, token_file=outside)
    (tmp_path / "link").symlink_to("/etc")
    with pytest.raises(InputError, match="ca_bundle is link/passwd; it must be in"):
        options(settings, ca_bundle="link/passwd")


def test_certificates_are_verified_unless_that_is_disabled():
    assert options(endpoint=THEIRS).verify
    assert not options(endpoint=THEIRS, ssl_verify=False).verify
    assert not options(Prometheus(verify=False)).verify
    assert options(Prometheus(verify=False), ssl_verify=True).verify
    assert options(Prometheus(verify=False), endpoint=THEIRS).verify


@pytest.mark.parametrize(
    "url", ["ftp://host", "host:9090", "http://", "http://host:99999", "http://host/?a=b", "http://[::1"]
)
def test_invalid_addresses_are_rejected(url):
    with pytest.raises(InputError, match="is not a valid address"):
        options(endpoint=url)


def test_addresses_hold_no_secrets_and_errors_repeat_none():
    with pytest.raises(InputError, match="has a user name") as caught:
        options(endpoint="http://me:secret@host:9090")
    assert "secret" not in str(caught.value)
    assert "hush" not in repr(options(token="hush"))
