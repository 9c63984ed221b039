"""The older commands of dynamoctl with `--server`: their output and their changes over the REST API."""

import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey
from dynamo_shared.kube import KubeClient

from .command import called, dynamoctl, printed
from .dynadmin import EVERYTHING, WATCHING, Api, account, happens
from .points import graph, ready_request

Run = Callable[..., Awaitable[tuple[int, str, str]]]


@pytest.fixture
async def api(rest_api: Api, kube: KubeClient, namespace: str) -> Api:
    result = replace(rest_api, token=await account(kube, namespace, "owner", EVERYTHING, WATCHING))
    for name in ("chat", "other"):
        obj = graph(name, "one", "two")
        obj["metadata"]["namespace"] = namespace
        await kube.create(DYNAMO_GRAPH_DEPLOYMENTS, obj)
    path = f"/api/v1/namespaces/{namespace}/deployments?watch=true"
    async with result.stream(path) as events:
        known: set[str] = set()
        while known != {"chat", "other"}:
            event, data, _ = await events.next()
            known |= {data["metadata"]["name"]} if event == "ADDED" else set()
    return result


@pytest.fixture
def run(api: Api, namespace: str, tmp_path: Path) -> Run:
    """Run a command to its end: exit code, standard output, standard error."""

    async def command(*arguments: str) -> tuple[int, str, str]:
        return await called(*arguments, "-n", namespace, "--server", api.url, cwd=tmp_path, DYNAMO_TOKEN=api.token)

    return command


async def test_get(run: Run, namespace: str) -> None:
    code, shown, errors = await run("get", "dgd")
    lines = [line.split() for line in shown.splitlines()]
    assert (code, errors, lines[0][:2], [line[0] for line in lines[1:]]) == (
        0,
        "",
        ["NAME", "BACKEND"],
        ["chat", "other"],
    )
    code, shown, _ = await run("get", "dgd", "chat", "-o", "json")
    document = json.loads(shown)
    assert (code, document["metadata"]["name"], document["metadata"]["namespace"]) == (0, "chat", namespace)
    assert await run("get", "all", "nothing") == (
        1, "", f"dynamoctl: no dgd or dcd 'nothing' in {namespace}; see dynamoctl get -A\n"
    )  # fmt: skip


async def test_get_watches(api: Api, kube: KubeClient, namespace: str, tmp_path: Path) -> None:
    watching = ("get", "dgd", "chat", "--watch", "-n", namespace, "--server", api.url)
    async with dynamoctl(*watching, cwd=tmp_path, DYNAMO_TOKEN=api.token) as process:
        await printed(process, "chat")
        await kube.delete(DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey(namespace, "chat"))
        await printed(process, "deleted")


async def test_scale(run: Run, kube: KubeClient, namespace: str) -> None:
    async def replicas() -> list[int]:
        observed = await kube.get(DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey(namespace, "chat"))
        return [each["replicas"] for each in observed["spec"]["components"]]

    code, said, _ = await run("scale", "chat", "one=2", "--dry-run")
    assert (code, said, await replicas()) == (0, "one would have 2 replicas (written to the graph)\n", [1, 1])
    code, said, _ = await run("scale", "chat", "one=2", "two=3", "-o", "json")
    assert (code, [json.loads(line)["component"] for line in said.splitlines()]) == (0, ["one", "two"])
    assert await replicas() == [2, 3]
    ambiguous = "dynamoctl: worker: 2 components have this type; name one of one, two\n"
    assert await run("scale", "chat", "worker=4") == (1, "", ambiguous)
    refused = "dynamoctl: --reason, --generation: not allowed with --server\n"
    assert await run("scale", "chat", "one=4", "--reason", "r", "--generation", "3") == (2, "", refused)
    assert await replicas() == [2, 3]


async def test_events(run: Run, kube: KubeClient, namespace: str) -> None:
    for name, reasons in (("chat", ("First", "Second")), ("other", ("Third",))):
        about = await kube.get(DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey(namespace, name))
        for reason in reasons:
            await happens(kube, about, reason, DYNAMO_GRAPH_DEPLOYMENTS.kind)
    code, shown, _ = await run("events", "--name", "chat")
    assert (code, [line.split()[1:] for line in shown.splitlines()]) == (
        0, [["Normal", "DynamoGraphDeployment/chat", f"{each}:", each] for each in ("First", "Second")]
    )  # fmt: skip
    code, shown, _ = await run("events", "--name", "chat", "-o", "json", "--since", "1h")
    assert (code, [json.loads(line)["reason"] for line in shown.splitlines()]) == (0, ["First", "Second"])
    assert (await run("events"))[::2] == (2, "dynamoctl: --server requires an object: --kind dgd --name NAME\n")
    assert (await run("events", "--name", "chat", "--kind", "pod"))[::2] == (
        2, "dynamoctl: --kind pod: with --server, use one of dgd, dcd, dgdr\n"
    )  # fmt: skip


async def test_points_of_a_request(run: Run, kube: KubeClient, namespace: str) -> None:
    await ready_request(kube, namespace)
    code, drawn, _ = await run("dgdr", "plot", "qwen")
    assert code == 0
    assert "1*   vllm" in drawn
    code, said, _ = await run("dgdr", "apply", "qwen", "--dry-run")
    assert (code, "name: qwen-dgd" in said) == (0, True)
    deployed = f"DynamoGraphDeployment qwen-dgd deployed in namespace {namespace}\n"
    for chosen, components in (((), ["one"]), (("--point", "2"), ["one", "two"])):
        assert await run("dgdr", "apply", "qwen", *chosen) == (0, deployed, "")
        observed = await kube.get(DYNAMO_GRAPH_DEPLOYMENTS, ObjectKey(namespace, "qwen-dgd"))
        assert [each["name"] for each in observed["spec"]["components"]] == components
    code, _, errors = await run("dgdr", "apply", "qwen", "--point", "3")
    assert (code, errors) == (1, "dynamoctl: point: a number from 1 to 2\n")
