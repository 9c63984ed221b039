"""The work of `dynamoctl scale`: sends the request to the scaler over NATS."""

import getpass
import re
import uuid
from collections.abc import Sequence

import msgspec
from dynamo_shared.bus import BusUnavailableError
from dynamo_shared.bus.commands import CommandSender
from dynamo_shared.bus.protocol import Bus
from dynamo_shared.bus.streams import STATE
from dynamo_shared.wire.specifications.platform import CommandResult
from dynamo_shared.wire.specifications.scaling import ScaleData, ScaleTarget

from dynamo_ctl.commands.scale import ScaleOptions
from dynamo_ctl.errors import CtlError, ExitCode
from dynamo_ctl.nats_targets import NatsTarget, connected, stream_exists
from dynamo_ctl.output import Print, with_reason


def replicas(targets: Sequence[str]) -> list[tuple[str, int]]:
    """Parse `Decode=3` into component and number. Raises CtlError for anything else."""
    pairs = []
    for target in targets:
        match = re.fullmatch(r"([A-Za-z0-9](?:[-A-Za-z0-9]*[A-Za-z0-9])?)=([0-9]{1,9})", target)
        if match is None:
            raise CtlError(f"{target}: write COMPONENT=N, such as Decode=3; N has 9 digits at most", ExitCode.USAGE)
        pairs.append((match[1], int(match[2])))
    return pairs


async def scale(
    options: ScaleOptions,
    namespace: str,
    replicas: Sequence[tuple[str, int]],
    where: NatsTarget,
    out: Print,
    *,
    as_json: bool = False,
) -> None:
    """Send the request and print the answer. Raises CtlError if the answer is a refusal, or if no answer comes."""
    async with connected(where) as bus:
        completed, result = await ask(bus, where.cluster, namespace, options, replicas)
    if as_json:
        out(msgspec.json.encode({"completed": completed, **msgspec.to_builtins(result)}).decode())
    elif completed:
        out(with_reason(result.reason, result.message))
    if not completed:
        raise CtlError(f"refused: {with_reason(result.reason, result.message)}")


async def ask(
    bus: Bus, cluster: str, namespace: str, options: ScaleOptions, replicas: Sequence[tuple[str, int]]
) -> tuple[bool, CommandResult]:
    """Send the command and wait for its answer. Returns whether it was carried out, and the scaler's result."""
    data = ScaleData(
        graph_deployment=options.graph,
        targets=[ScaleTarget(component=name, replicas=count) for name, count in replicas],
        reason=options.reason,
        requester=f"dynamoctl/{_user()}",
        expected_generation=str(options.generation),
        dry_run=options.dry_run,
    )
    request = options.request or uuid.uuid4().hex
    try:
        if not await stream_exists(bus, STATE):
            raise CtlError(
                "the platform has never run with this NATS server; choose another one with --nats or --config"
            )
        return await CommandSender(bus, cluster).ask(
            "scaler", "scale", namespace, data, request=request, timeout=options.timeout
        )
    except TimeoutError:
        raise CtlError(
            f"no answer within {options.timeout:g} s: check that the scaler runs, and that the cluster is {cluster}. "
            f"The command stays queued; repeat it with --request {request}: it runs only once",
            ExitCode.UNREACHABLE,
        ) from None
    except BusUnavailableError as error:
        raise CtlError(
            f"NATS no longer answers: {error}; repeat the command with --request {request}", ExitCode.UNREACHABLE
        ) from error


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return "unknown"
