"""Exec plugins of kubeconfigs, which end with the login that runs them, and what they started with them.

kubernetes_asyncio 36 leaves a plugin that outlives its time-out behind, one more at each attempt, and reads its output
before its errors, so that one that writes many errors first never ends. It calls one interactive that has a terminal to write to,
where Kubernetes means one to read from, and gives each its own standard input.
"""

import json
import sys
from functools import cache
from typing import Any

from dynamo_shared.aio import Process, both
from dynamo_shared.kube import upstream
from dynamo_shared.kube.credentials import ConfigError


@cache
def plugin_class() -> Any:
    """The library's ExecProvider with this module's way to run a plugin."""

    class ExecPlugin(upstream.load().exec_provider.ExecProvider):  # type: ignore[misc]
        async def run(self, _: str | None = None) -> Any:
            interactive = sys.stdin is not None and sys.stdin.isatty()
            info = {"apiVersion": self.api_version, "kind": "ExecCredential", "spec": {"interactive": interactive}}
            environ = {**self.env, "KUBERNETES_EXEC_INFO": json.dumps(info)}
            return _status(self.args[0], *await _output(self.args, environ, interactive), self.api_version)

    return ExecPlugin


async def _output(arguments: list[str], environ: dict[str, str], interactive: bool) -> tuple[int, bytes, bytes]:
    """Exit code, output and errors. ConfigError where it cannot be started."""
    try:
        # One that asks at the terminal must stay in its session.
        process = await Process.start(arguments, environ=environ, own_session=not interactive)
    except OSError as error:
        words = (
            f"exec: {arguments[0]} cannot be started: {error.strerror or error}; install it, or name another kubeconfig"
        )
        raise ConfigError(words) from error
    async with process:
        output, errors = await both(process.stdout.read(), process.stderr.read())
        return await process.wait(), output, errors


def _status(command: str, code: int, output: bytes, errors: bytes, version: str) -> Any:
    """The `status` of the ExecCredential that a plugin printed. ConfigError where it printed none."""
    if code:
        raise ConfigError(
            f"exec: {command}: process returned {code}. {errors.decode(errors='replace').strip()}".strip(". ")
        )
    try:
        credential = json.loads(output)
        if credential["apiVersion"] != version:
            raise ConfigError(f"exec: the plugin answers in {credential['apiVersion']}, and was asked in {version}")
        status = {name: value for name, value in credential["status"].items() if value}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError(f"exec: the plugin printed no ExecCredential: {error!r}") from error
    if "token" not in status and not {"clientCertificateData", "clientKeyData"} <= status.keys():
        raise ConfigError("exec: the plugin printed neither a token nor a client certificate with its key")
    return status
