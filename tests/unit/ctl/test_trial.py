"""The trial of an installation."""

import asyncio
from typing import Any, Self

import pytest
from dynamo_ctl.commands.bootstrap import trial
from dynamo_ctl.errors import CtlError, ExitCode
from dynamo_shared.api.resources import ObjectKey
from dynamo_shared.kube import NotFound

KEY = ObjectKey("dynamo-system", "trial")


class Kube:
    """A cluster in which someone deletes the graph of the trial; `successful`: after it was successful."""

    def __init__(self, *, successful: bool) -> None:
        self.answers: list[dict[str, Any]] = [{"status": {"state": "successful"}}] if successful else []

    async def open(self, **_: Any) -> Self:
        return self

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def apply(self, *_: Any) -> None:
        pass

    async def get(self, *_: Any) -> dict[str, Any]:
        if self.answers:
            return self.answers.pop()
        raise NotFound(404, "NotFound", "not found")

    async def delete(self, *_: Any) -> None:
        raise NotFound(404, "NotFound", "not found")


@pytest.mark.parametrize("successful", [False, True])
async def test_a_graph_that_someone_deletes_is_reported(monkeypatch: pytest.MonkeyPatch, *, successful: bool) -> None:
    async def silent(_: ObjectKey) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(trial, "KubeClient", Kube(successful=successful))
    monkeypatch.setattr(trial, "_answered", silent)
    asked = trial.Trial(KEY, "image", "model", 0.1, webhooks=False)
    with pytest.raises(CtlError) as failed:
        await trial.carry_out(asked, None, None)
    assert (str(failed.value), failed.value.code) == (f"graph {KEY} was deleted meanwhile", ExitCode.NOT_READY)


async def test_an_answer_counts_though_the_graph_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    async def answered(_: ObjectKey) -> str:
        return "yes"

    monkeypatch.setattr(trial, "KubeClient", Kube(successful=True))
    monkeypatch.setattr(trial, "_answered", answered)
    assert await trial.carry_out(trial.Trial(KEY, "image", "model", 5.0, webhooks=False), None, None) == "yes"
