"""The trial of an installation."""

import asyncio

import pytest
from dynamo_ctl.commands.bootstrap import trial
from dynamo_ctl.commands.bootstrap.plan import CREATED_BY
from dynamo_ctl.errors import CtlError, ExitCode
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey, Resource

from tests.building.memory_kube import MemoryKube
from tests.building.opened import Opened

KEY = ObjectKey("dynamo-system", "trial")
OTHER = {**DYNAMO_GRAPH_DEPLOYMENTS.type_meta, "metadata": {**KEY._asdict(), "labels": {"team": "a"}}, "spec": {}}
LEFT = {**OTHER, "metadata": {**KEY._asdict(), "labels": {CREATED_BY: trial.FIELD_MANAGER}}}


class Kube(Opened, MemoryKube):
    """A cluster in which graphs are successful. `deleted`: the graph is deleted before (0) or after (1) it is
    successful.
    """

    def __init__(self, *stored: KubeObject, deleted: int | None = None) -> None:
        super().__init__(*stored)
        self.reads_before_end = deleted

    async def get(self, resource: Resource, key: ObjectKey) -> KubeObject:
        if (resource.id, key) in self.objects and self.reads_before_end is not None:
            if self.reads_before_end == 0:
                self.remove(resource, key)
            self.reads_before_end -= 1
        return {**await super().get(resource, key), "status": {"state": "successful"}}


@pytest.mark.parametrize("deleted", [0, 1])
async def test_a_graph_that_someone_deletes_is_reported(monkeypatch: pytest.MonkeyPatch, deleted: int) -> None:
    async def silent(_: ObjectKey) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(trial, "KubeClient", Kube(deleted=deleted))
    monkeypatch.setattr(trial, "_wait_for_answer", silent)
    asked = trial.Trial(KEY, "image", "model", 0.1, webhooks=False)
    with pytest.raises(CtlError) as failed:
        await trial.carry_out(asked, None, None)
    assert (str(failed.value), failed.value.code) == (f"graph {KEY} was deleted meanwhile", ExitCode.NOT_READY)


@pytest.fixture
def answering(monkeypatch: pytest.MonkeyPatch) -> None:
    async def answered(_: ObjectKey) -> str:
        return "yes"

    monkeypatch.setattr(trial, "_wait_for_answer", answered)


@pytest.mark.usefixtures("answering")
@pytest.mark.parametrize(
    "kube", [Kube(deleted=1), Kube(), Kube(LEFT)], ids=["deleted", "none", "left by a killed trial"]
)
async def test_a_trial_returns_the_answer_and_deletes_its_graph(monkeypatch: pytest.MonkeyPatch, kube: Kube) -> None:
    monkeypatch.setattr(trial, "KubeClient", kube)
    assert await trial.carry_out(trial.Trial(KEY, "image", "model", 5.0, webhooks=False), None, None) == "yes"
    assert kube.stored(DYNAMO_GRAPH_DEPLOYMENTS) == []


@pytest.mark.usefixtures("answering")
async def test_a_graph_that_is_not_of_a_trial_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    kube = Kube(OTHER)
    monkeypatch.setattr(trial, "KubeClient", kube)
    with pytest.raises(CtlError, match=r"graph dynamo-system/trial exists.*choose another --name"):
        await trial.carry_out(trial.Trial(KEY, "image", "model", 5.0, webhooks=False), None, None)
    assert kube.writes == []


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b'{"choices": [{"message": {"content": "yes"}}]}', "yes"),
        (b'{"choices": []}', None),
        (b'{"choices": null}', None),
        (b'{"status": "ok"}', None),
        (b"[]", None),
        (b"<html>", None),
        (b"\xff", None),
    ],
)
def test_only_a_completion_is_the_answer_of_the_frontend(content: bytes, text: str | None) -> None:
    assert trial.text_of(content) == text
