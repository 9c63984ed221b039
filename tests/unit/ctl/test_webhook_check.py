"""The check of the webhooks: the errors that it repeats, and those that it raises."""

import pytest
from dynamo_ctl.commands.bootstrap import webhook_check
from dynamo_ctl.errors import ExitCode, explain
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.kube import Forbidden, KubeError

from tests.building.opened import Opened


class Kube(Opened):
    """A cluster that refuses each creation with the next of these errors."""

    def __init__(self, *errors: KubeError) -> None:
        self.errors = list(errors)

    async def create(self, *_: object, **__: object) -> KubeObject:
        raise self.errors.pop(0)


def forbidden(message: str) -> Forbidden:
    return Forbidden(403, "Forbidden", message)


DENIED = forbidden('admission webhook "v.nvidia.com" denied the request: /spec: ...')


async def test_the_webhook_check_fails_at_once_for_a_caller_without_rights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhook_check, "KubeClient", Kube(forbidden("User a cannot create graphs"), DENIED))
    with pytest.raises(Forbidden) as refused:
        await webhook_check.check("a", 600, None, None)
    code, message = explain(refused.value)
    assert code == ExitCode.FAILED
    assert message.startswith("the cluster refuses: ")
    assert "request the permission" in message


async def test_the_webhook_check_waits_for_webhooks_that_do_not_answer_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    kube = Kube(KubeError(500, "InternalError", "failed calling webhook: connection refused"), DENIED)
    monkeypatch.setattr(webhook_check, "KubeClient", kube)
    monkeypatch.setattr(webhook_check, "FIRST_RETRY", 0.001)
    await webhook_check.check("a", 600, None, None)
    assert not kube.errors
