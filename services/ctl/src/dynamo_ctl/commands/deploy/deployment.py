"""The work of `dynamoctl deploy`, `estimate` and `logs`."""

import json
from contextlib import aclosing
from pathlib import Path
from typing import Any

from dynamo_shared.api.gpus import words as gpu_words

from dynamo_ctl import files
from dynamo_ctl.commands.deploy.steps import Steps
from dynamo_ctl.commands.dgdr.drawing import table
from dynamo_ctl.errors import CtlError, ExitCode
from dynamo_ctl.output import Print
from dynamo_ctl.remote import Remote, field_error

#: Status of a new deployment. The API answers 200 if an earlier request had the same key.
_CREATED = 201
#: Longest idempotency key of the API, in a header.
_MAX_KEY_LENGTH = 128


def intent_of(file: Path) -> dict[str, Any]:
    """The intent of a file. Raises CtlError if it has none."""
    return files.document(file, "an intent (docs/dynadmin.md)", f"; kubectl apply -f {file} applies manifests")


def merged(intent: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """An intent, overridden by options that are not None."""
    result = dict(intent)
    for key, value in given.items():
        if isinstance(value, dict):
            value = merged(intent[key] if isinstance(intent.get(key), dict) else {}, value)  # noqa: PLW2901
            if value:
                result[key] = value
        elif value is not None:
            result[key] = value
    return result


async def deploy(
    remote: Remote,
    sent: dict[str, Any],
    out: Print,
    *,
    remark: Print,
    dry_run: str,
    as_json: bool,
    key: str,
) -> None:
    """Deploy over the API, or let the API server check it. Prints only the result; `remark` gets warnings."""
    if not (key.isascii() and key.isprintable() and " " not in key and len(key) <= _MAX_KEY_LENGTH):
        raise CtlError(
            f"--request: use 1 to {_MAX_KEY_LENGTH} printable ASCII characters without blanks", ExitCode.USAGE
        )
    headers = {"Idempotency_Key": key} if key else {}
    status, answer = await remote.answer("POST", remote.path("deploy", dryRun=dry_run), sent, **headers)
    if as_json:
        out(json.dumps(answer))
        return
    remark_on(answer, remark)
    if (gpus := answer.get("gpus")) is not None:
        missing = "; ".join(
            f"{each['component']}: {gpu_words(each['gpus'])} missing ({each['why']})" for each in gpus["missing"]
        )
        remark(f"GPUs: {gpus['needed']} needed, {gpus['free']} free" + (f"; {missing}" if missing else ""))
    if dry_run:
        out(answer["yaml"].rstrip())
        return
    stored = answer["object"]
    done = "created" if status == _CREATED else f"exists unchanged (created before by request {key})"
    out(f"{stored['kind']} {stored['metadata']['name']} {done} in namespace {remote.namespace}")


def remark_on(answer: dict[str, Any], remark: Print) -> None:
    """Print what a manifest cannot express, and its warnings."""
    for each in answer["unexpressed"]:
        remark(f"not expressed: {field_error(each['pointer'], each['detail'])}")
    for warning in answer["warnings"]:
        remark(f"warning: {warning}")


async def estimate(remote: Remote, sent: dict[str, Any], out: Print, *, remark: Print, as_json: bool) -> None:
    """Print the estimate of an intent. `remark` gets the progress, and the limits of the estimate."""
    last: Any = None
    with Steps(remark) as steps:
        async with remote.stream("POST", remote.path("estimate"), sent) as events:
            async for event in events:
                if event.name == "progress" and not as_json:
                    steps.say(f"{event.data['phase']}: {event.data['message']}")
                elif event.name == "estimate":
                    last = event.data
                elif event.name in ("failed", "unauthorized", "error"):
                    raise CtlError(str(event.data["detail"]))
                elif event.name == "end":
                    break
    if last is None:
        raise CtlError("the stream ended without an estimate; try again")
    if as_json:
        out(json.dumps(last))
        return
    selected = last["selected"]
    for line in table([{"figures": each, "selected": each == selected} for each in last["pareto"] or [selected]]):
        out(line)
    for note in last["notes"]:
        remark(f"note: {note}")


async def logs(
    remote: Remote, graph: str, component: str, out: Print, *, remark: Print, follow: bool, tail: int
) -> None:
    """Print the log lines of all pods of a graph, each with its pod. `remark` gets each log that cannot be read.

    Raises CtlError if no log can be read.
    """
    query = {"component": component, "tail": tail, "follow": "true" if follow else ""}
    path = remote.path("deployments", graph, "logs", **query)
    if not follow:
        answer = await remote.listed(path)
        for line in answer["items"]:
            _log_line(line, out)
        if answer["problems"] and not answer["items"]:
            raise CtlError("\n".join(f"not read: {problem}" for problem in answer["problems"]))
        for problem in answer["problems"]:
            remark(f"not read: {problem}")
        return
    async with aclosing(remote.follow(path)) as events:
        async for event in events:
            if event.name == "end":
                return
            if event.name == "log":
                _log_line(event.data, out)
            elif event.name == "notice":
                remark(f"{event.data['pod']}/{event.data['container']}: {event.data['text']}")


def _log_line(line: dict[str, Any], out: Print) -> None:
    out(f"{line['pod']}/{line['container']} {line['text']}")
