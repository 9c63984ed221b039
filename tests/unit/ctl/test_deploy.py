"""What `dynamoctl deploy --dry-run` and `estimate` print: the result alone, so that it can be piped."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web
from dynamo_ctl.commands.deploy import deployment

from tests.unit.ctl.command_line import Dynamoctl, written
from tests.unit.ctl.test_remote import served

INTENT = "{mode: graph, name: chat, backend: vllm, model: {name: m}, workload: {isl: 3}}"
MANIFEST: dict[str, Any] = {"kind": "DynamoGraphDeployment", "metadata": {"name": "chat"}}
CHECKED = {
    "unexpressed": [{"pointer": "/workload/isl", "detail": "a graph has no objective"}],
    "warnings": ["image: is a default"],
    "gpus": {"needed": 2, "free": 1, "missing": [{"component": "Worker", "gpus": 1, "why": "1 is free"}]},
    "yaml": yaml.safe_dump(MANIFEST),
    "object": MANIFEST,
}
SAID = [
    "not expressed: workload.isl: a graph has no objective",
    "warning: image: is a default",
    "GPUs: 2 needed, 1 free; Worker: 1 GPU missing (1 is free)",
]
POINT = {"backend": "vllm", "serving": "aggregated", "gpus": 1, "ttft": 99.5}
ESTIMATED = [
    ("progress", {"phase": "simulating", "message": "1 of 2"}),
    ("estimate", {"pareto": [], "selected": POINT, "notes": ["read from memory"]}),
    ("end", {}),
]


def test_a_manifest_that_no_server_has_checked(tmp_path: Path, dynamoctl: Dynamoctl) -> None:
    ran = dynamoctl(
        "deploy", "-f", written(tmp_path, INTENT), "--gpus", "16", "--gpus-per-node", "8", "--dry-run", "client"
    )
    (graph,) = ran.objects
    assert [each.get("multinode") for each in graph["spec"]["components"]] == [None, {"nodeCount": 2}]
    assert ran.out.startswith("apiVersion: ")
    assert ran.err.startswith("not expressed: workload.isl: a graph has no objective")


async def answer(request: web.Request) -> web.StreamResponse:
    if not request.path.endswith("/estimate"):
        return web.json_response(CHECKED)
    events = "".join(f"event: {name}\ndata: {json.dumps(data)}\n\n" for name, data in ESTIMATED)
    return web.Response(body=events.encode(), headers={"Content-Type": "text/event-stream"})


@pytest.mark.parametrize(
    ("command", "printed", "said"),
    [
        ("deploy", yaml.safe_dump(MANIFEST).rstrip(), SAID),
        ("estimate", "1. vllm aggregated, 1 GPU, ttft 99.5 ms", ["simulating: 1 of 2", "note: read from memory"]),
    ],
)
async def test_what_the_api_answers(command: str, printed: str, said: list[str], tmp_path: Path) -> None:
    out, remarks = list[str](), list[str]()
    async with served(answer, written(tmp_path, "t")) as api:
        if command == "deploy":
            await deployment.deploy(
                api, "team", {}, out.append, remark=remarks.append, dry_run="server", as_json=False, key=""
            )
        else:
            await deployment.estimate(api, "team", {}, out.append, remark=remarks.append, as_json=False)
    assert (out, remarks) == ([printed], said)
