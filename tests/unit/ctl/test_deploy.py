"""`dynamoctl deploy --dry-run` and `estimate` print only the result on standard output, so that it can be piped."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web
from dynamo_ctl.commands.deploy import deployment
from dynamo_ctl.commands.deploy.steps import Steps

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
POINT = {"backend": "vllm", "serving": "agg", "gpus": 1, "ttft": 99.5, "meetsSLA": True}
SLOWER = {**POINT, "ttft": 199.5, "meetsSLA": False}
ESTIMATED = [
    *(("progress", {"phase": "Sweeping", "message": f"{each} of 2"}) for each in range(3)),
    ("progress", {"phase": "Done", "message": "selected"}),
    ("estimate", {"pareto": [SLOWER, POINT], "selected": POINT, "notes": ["read from memory"]}),
    ("end", {}),
]
TABLE = """\
     BACKEND   SERVING   GPUS   TTFT    ITL   TOKENS/S/GPU   TOKENS/S/USER   REQ/S   KEEPS SLA
1    vllm      agg       1      199.5   -     -              -               -       no
2*   vllm      agg       1      99.5    -     -              -               -       yes"""


def test_a_dry_run_without_a_server_prints_the_manifest(tmp_path: Path, dynamoctl: Dynamoctl) -> None:
    ran = dynamoctl(
        "deploy", "-f", written(tmp_path, INTENT), "--gpus", "16", "--gpus-per-node", "8", "--dry-run", "client"
    )
    (graph,) = ran.objects
    assert [each.get("multinode") for each in graph["spec"]["components"]] == [None, {"nodeCount": 2}]
    assert ran.out.startswith("apiVersion: ")
    assert ran.err.startswith("not expressed: workload.isl: a graph has no objective")


def test_gpus_of_an_objective_in_a_file_are_its_total(tmp_path: Path, dynamoctl: Dynamoctl) -> None:
    """They became GPUs of a replica, which an objective does not have."""
    file = written(tmp_path, "{mode: objective, name: chat, model: {name: m}}")
    ran = dynamoctl("deploy", "-f", file, "--gpus", "16", "--gpu", "h100_sxm", "--dry-run", "client")
    assert ran.objects[0]["spec"]["hardware"] == {"totalGpus": 16, "gpuSku": "h100_sxm"}
    assert ran.err == ""


async def answer(request: web.Request) -> web.StreamResponse:
    if not request.path.endswith("/estimate"):
        return web.json_response(CHECKED)
    events = "".join(f"event: {name}\ndata: {json.dumps(data)}\n\n" for name, data in ESTIMATED)
    return web.Response(body=events.encode(), headers={"Content-Type": "text/event-stream"})


@pytest.mark.parametrize(
    ("command", "printed", "said"),
    [
        ("deploy", yaml.safe_dump(MANIFEST).rstrip(), SAID),
        ("estimate", TABLE, ["Sweeping: 0 of 2", "Done: selected", "note: read from memory"]),
    ],
)
async def test_the_answer_of_the_api_is_printed(command: str, printed: str, said: list[str], tmp_path: Path) -> None:
    out, remarks = list[str](), list[str]()
    async with served(answer, written(tmp_path, "t")) as api:
        if command == "deploy":
            await deployment.deploy(api, {}, out.append, remark=remarks.append, dry_run="server", as_json=False, key="")
        else:
            await deployment.estimate(api, {}, out.append, remark=remarks.append, as_json=False)
    assert ("\n".join(out), remarks) == (printed, said)


def test_progress_on_a_terminal_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "10")
    with Steps(print) as steps:
        steps.say("Sweeping: 1 of 2")
    assert capsys.readouterr() == ("", "\r\x1b[KSweeping:\r\x1b[K")
