from pathlib import Path
from typing import Any

import pytest
from dynamo_ctl import webhooks
from dynamo_ctl.commands.up.addresses import NO_ADMISSION, addresses_of
from dynamo_ctl.commands.up.platform import _on_this_machine
from dynamo_shared.runtime.settings import Settings


def addresses(settings: dict[str, Any], metrics_port: int = 8080) -> dict[str, str]:
    made = Settings.model_validate({"platform": {"nats": {"servers": ["nats://127.0.0.1:4222"]}}, **settings})
    return dict(addresses_of(made, "https://127.0.0.1:6443", 8081, metrics_port))


@pytest.mark.parametrize(("secure", "scheme"), [(True, "https"), (False, "http")])
def test_the_address_of_metrics_has_the_scheme_that_they_are_served_by(secure: bool, scheme: str) -> None:
    listed = addresses({"server": {"metrics": {"secure": secure}}})
    assert listed["metrics"] == f"{scheme}://127.0.0.1:8080/metrics"


def test_without_metrics_there_is_no_address_of_them() -> None:
    assert "metrics" not in addresses({}, metrics_port=0)


def test_the_page_and_the_api_are_named(tmp_path: Path) -> None:
    assert addresses({})["page, API"] == "http://localhost:8082/"
    platform = {"nats": {"servers": ["nats://h:1"]}, "dynadmin": {"port": 9000, "certDir": str(tmp_path)}}
    assert addresses({"platform": platform})["page, API"] == "https://localhost:9000/"


def test_admission_that_does_not_run_says_so() -> None:
    assert addresses({})["admission"] == NO_ADMISSION


@pytest.mark.parametrize(("admission", "drain"), [({}, 0.0), ({"drain": 3}, 3.0)])
def test_webhooks_on_this_machine_end_at_once_unless_the_settings_say_otherwise(
    admission: dict[str, Any], drain: float
) -> None:
    """The drain waited for the API server to use another replica, which does not exist."""
    made = Settings.model_validate({"platform": {"nats": {"servers": ["nats://h:1"]}, "admission": admission}})
    assert webhooks.on_loopback(made, 1).platform.admission.drain == drain


@pytest.mark.parametrize(("dynadmin", "drain"), [({}, 0.0), ({"port": 9000}, 0.0), ({"drain": "3s"}, 3.0)])
def test_the_rest_api_on_this_machine_ends_at_once_unless_the_settings_say_otherwise(
    dynadmin: dict[str, Any], drain: float
) -> None:
    given = {"nats": {"servers": ["nats://h:1"]}, **({"dynadmin": dynadmin} if dynadmin else {})}
    assert _on_this_machine(Settings.model_validate({"platform": given})).platform.dynadmin.drain == drain
