"""The commands of a platform team: `helm` and `kubectl` on the node's cluster."""

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from dynamo_shared.api.objects import KubeObject

from tests.building.processes import ending

COMMAND_WITHIN = 60.0
POLL_SECONDS = 0.5


class CommandError(Exception):
    """A command failed; the message has its output."""


class Cluster:
    """Commands with an administrator's kubeconfig."""

    def __init__(self, kubeconfig: Path, kubectl: Path, helm: Path, folder: Path) -> None:
        self._kubeconfig = kubeconfig
        self._kubectl = kubectl
        self._helm = helm
        self._folder = folder

    async def kubectl(self, *arguments: str, within: float = COMMAND_WITHIN, stdin: str = "") -> str:
        """kubectl's output. Raises CommandError."""
        return await _output([str(self._kubectl), "--kubeconfig", str(self._kubeconfig), *arguments], within, stdin)

    async def refusal(self, *arguments: str) -> str:
        """kubectl's error; empty if it succeeds."""
        try:
            await self.kubectl(*arguments)
        except CommandError as error:
            return str(error)
        return ""

    async def helm(self, *arguments: str, within: float = COMMAND_WITHIN) -> str:
        """Helm's output. Raises CommandError."""
        return await _output([str(self._helm), "--kubeconfig", str(self._kubeconfig), *arguments], within)

    async def get(self, *arguments: str) -> KubeObject:
        """An object."""
        return dict(json.loads(await self.kubectl("get", *arguments, "--output=json")))

    async def items(self, *arguments: str) -> list[KubeObject]:
        """Objects of a list."""
        return list((await self.get(*arguments))["items"])

    async def apply(self, *objects: KubeObject) -> None:
        """Apply objects as a user does, through the webhooks."""
        listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
        await self.kubectl("apply", "--filename=-", stdin=listed)

    def values(self, name: str, values: Mapping[str, Any]) -> str:
        """A values file for Helm."""
        path = self._folder / f"{name}.json"
        path.write_text(json.dumps(values))
        return str(path)


async def eventually(check: Callable[[], Awaitable[Any]], what: str, within: float) -> Any:
    """The first true answer of `check`, which may fail until then."""
    deadline, last = time.monotonic() + within, None
    while time.monotonic() < deadline:
        try:
            last = await check()
        except (CommandError, OSError, AssertionError, TimeoutError) as error:
            last = error
        else:
            if last:
                return last
        await asyncio.sleep(POLL_SECONDS)
    raise AssertionError(f"not within {within:g} s: {what}; last: {last!r}")


async def _output(command: list[str], within: float, stdin: str = "") -> str:
    process = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    shown = " ".join([Path(command[0]).name, *command[3:]])[:160]
    try:
        async with ending(process), asyncio.timeout(within):
            output, errors = await process.communicate(stdin.encode())
    except TimeoutError:
        raise CommandError(f"{shown} did not end within {within:.0f} s") from None
    if process.returncode:
        raise CommandError(f"{shown}: {errors.decode().strip()[-1500:]}")
    return output.decode()
