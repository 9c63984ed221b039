"""The pull secrets and the service account of a namespace's pods, from a scripted API server and a manual clock."""

import asyncio
import base64
import json
from types import SimpleNamespace
from typing import Any

import pytest
from dynamo_pod_builder import surroundings
from dynamo_pod_builder.render.access.pull_secrets import NO_PULL_SECRETS
from dynamo_pod_builder.surroundings import REFRESH, PullSecretLists, component_account
from dynamo_shared.api.resources import SECRETS, SERVICE_ACCOUNTS
from dynamo_shared.kube.errors import Forbidden, Unavailable
from dynamo_shared.runtime.facts import Fact

from tests.building.objects import stored_object

from .indexed import indexed

NVCR = '{"auths": {"nvcr.io": {"auth": "dTpw"}}}'


def secret(name: str, content: str = NVCR) -> dict[str, Any]:
    data = {".dockerconfigjson": base64.b64encode(content.encode()).decode()}
    return stored_object(SECRETS, name, type="kubernetes.io/dockerconfigjson", data=data)


class Stage:
    """A Kubernetes client that lists `secrets` or raises `error`, an announcer, and the secret lists under test."""

    def __init__(self, *secrets: dict[str, Any]) -> None:
        self.secrets = list(secrets)
        self.error: Exception | None = None
        self.asked: list[str] = []
        self.reported: list[tuple[dict[str, Any], Fact]] = []
        self.changed: list[str] = []
        self.time = 0.0
        self.lists = PullSecretLists(
            self,  # type: ignore[arg-type]
            self,  # type: ignore[arg-type]
            in_use=lambda namespace: namespace != "unused",
            changed=self.changed.append,
            clock=lambda: self.time,
        )

    async def list(self, _resource: Any, namespace: str, *, field_selector: str, most: int) -> Any:
        await asyncio.sleep(0)
        self.asked.append(f"{namespace} {field_selector}")
        if self.error is not None:
            raise self.error
        return [each for each in self.secrets if f"type={each['type']}" == field_selector]

    def announce(self, involved: dict[str, Any], fact: Fact) -> None:
        self.reported.append((involved, fact))


async def test_secrets_are_listed_once_for_all_callers_and_again_after_a_while() -> None:
    stage = Stage(secret("a"))
    result = await asyncio.gather(*(stage.lists.of("ns") for _ in range(5)))
    assert [each.of_hosts({"nvcr.io"}) for each in result] == [{"a"}] * 5
    assert stage.asked == ["ns type=kubernetes.io/dockerconfigjson", "ns type=kubernetes.io/dockercfg"]
    stage.time = REFRESH - 1
    await stage.lists.of("ns")
    assert len(stage.asked) == 2
    stage.time = REFRESH
    await stage.lists.of("ns")
    assert len(stage.asked) == 4
    assert stage.changed == []


async def test_a_waiting_caller_gets_its_list_although_it_was_evicted_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(surroundings, "CAPACITY", 1)
    stage = Stage(secret("a"))
    listing = [asyncio.create_task(stage.lists.of("ns")) for _ in range(2)]
    keep = stage.lists._keep

    def pushed(*given: Any) -> Any:
        known = keep(*given)
        keep("other", None, NO_PULL_SECRETS, ())
        return known

    monkeypatch.setattr(stage.lists, "_keep", pushed)
    assert [each.of_hosts({"nvcr.io"}) for each in await asyncio.gather(*listing)] == [{"a"}] * 2


async def test_changed_secrets_are_reported_to_the_rest_of_the_namespace() -> None:
    stage = Stage(secret("a"))
    await stage.lists.of("ns")
    stage.secrets.append(secret("b"))
    stage.time = REFRESH
    assert (await stage.lists.of("ns")).of_hosts({"nvcr.io"}) == {"a", "b"}
    assert stage.changed == ["ns"]


async def test_a_malformed_secret_is_reported_once_without_its_content() -> None:
    stage = Stage(secret("a"), secret("bad", json.dumps({"auths": "hunter2"})))
    for _ in range(3):
        assert (await stage.lists.of("ns")).of_hosts({"nvcr.io"}) == {"a"}
        stage.time += REFRESH
    ((about, fact),) = stage.reported
    assert (fact.reason, fact.type) == ("MalformedPullSecret", "Warning")
    assert about["metadata"]["name"] == "bad"
    assert "data" not in about
    assert "hunter2" not in fact.message


async def test_a_known_list_stays_while_the_api_server_is_away_and_an_unknown_one_raises() -> None:
    stage = Stage(secret("a"))
    stage.error = Unavailable(503, "ServiceUnavailable", "starting")
    with pytest.raises(Unavailable):
        await stage.lists.of("ns")
    stage.error = None
    await stage.lists.of("ns")
    stage.time, stage.error = REFRESH, Unavailable(503, "ServiceUnavailable", "stopping")
    assert (await stage.lists.of("ns")).of_hosts({"nvcr.io"}) == {"a"}
    # Not every reconcile requests it again.
    asked = len(stage.asked)
    await stage.lists.of("ns")
    assert len(stage.asked) == asked
    assert stage.changed == []


async def test_a_platform_without_the_right_to_list_secrets_works_without_them() -> None:
    stage = Stage(secret("a"))
    stage.error = Forbidden(403, "Forbidden", "secrets is forbidden")
    assert await stage.lists.of("ns") == NO_PULL_SECRETS
    stage.time, stage.error = REFRESH, None
    assert (await stage.lists.of("ns")).of_hosts({"nvcr.io"}) == {"a"}
    assert stage.changed == ["ns"]
    # Rights that are removed for a while remove no secrets from running pods.
    stage.time, stage.error = 2 * REFRESH, Forbidden(403, "Forbidden", "secrets is forbidden")
    assert (await stage.lists.of("ns")).of_hosts({"nvcr.io"}) == {"a"}


async def test_known_namespaces_are_listed_again_while_they_have_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new secret is noticed without any other event, and an error of one namespace does not end the loop."""
    stage = Stage(secret("a"))
    for namespace in ("ns", "unused"):
        await stage.lists.of(namespace)
    stage.asked.clear()
    checks = iter([Unavailable(503, "ServiceUnavailable", "away"), None])

    async def check(_: float) -> None:
        stage.time += REFRESH
        try:
            stage.error = next(checks)
        except StopIteration:
            raise asyncio.CancelledError from None

    monkeypatch.setattr(surroundings, "asyncio", SimpleNamespace(sleep=check))
    stage.secrets.append(secret("b"))
    with pytest.raises(asyncio.CancelledError):
        await stage.lists.run()
    assert {each.split()[0] for each in stage.asked} == {"ns"}
    assert stage.changed == ["ns"]


def account(name: str, marked: str | None = "true", namespace: str = "ns") -> dict[str, Any]:
    object_labels = {"nvidia.com/dynamo-component-pod": marked} if marked else {}
    return stored_object(SERVICE_ACCOUNTS, name, namespace, labels=object_labels)


@pytest.mark.parametrize(
    ("accounts", "name"),
    [
        ([], "default"),
        ([account("b"), account("a")], "a"),
        ([account("a", "false"), account("b", None)], "default"),
        ([account("a", namespace="other")], "default"),
    ],
)
def test_the_first_labelled_account_runs_component_pods(accounts, name, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = indexed(*accounts, of=SERVICE_ACCOUNTS)
    monkeypatch.setattr(cache, "by_index", lambda *_: pytest.fail("anyone may label thousands, which are unpacked"))
    assert component_account(cache, "ns") == name
