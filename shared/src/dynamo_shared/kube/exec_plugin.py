"""Runs exec plugins of kubeconfigs. A plugin and its child processes end with the login.

kubernetes_asyncio 36 leaves a timed-out plugin running, one more at each attempt. It reads standard output before
standard error, so that a plugin that first writes many errors never ends. It treats a plugin as interactive if standard
output is a terminal, where Kubernetes checks standard input, and shares its own standard input with each plugin.
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
    """The library's ExecProvider, which runs plugins with this module."""

    class ExecPlugin(upstream.load().exec_provider.ExecProvider):  # type: ignore[misc]
        async def run(self, _: str | None = None) -> Any:
            interactive = sys.stdin is not None and sys.stdin.isatty()
            info = {"apiVersion": self.api_version, "kind": "ExecCredential", "spec": {"interactive": interactive}}
            environ = {**self.env, "KUBERNETES_EXEC_INFO": json.dumps(info)}
            return _status(self.args[0], *await _output(self.args, environ, interactive), self.api_version)

    return ExecPlugin


async def _output(arguments: list[str], environ: dict[str, str], interactive: bool) -> tuple[int, bytes, bytes]:
    """Exit code, output and errors. Raises ConfigError if the plugin cannot be started."""
    try:
        # An interactive plugin must stay in the terminal's session.
        process = await Process.start(arguments, environ=environ, own_session=not interactive)
    except OSError as error:
        words = f"exec: cannot start {arguments[0]}: {error.strerror or error}; install it, or use another kubeconfig"
        raise ConfigError(words) from error
    async with process:
        output, errors = await both(process.stdout.read(), process.stderr.read())
        return await process.wait(), output, errors


def _status(command: str, code: int, output: bytes, errors: bytes, version: str) -> Any:
    """The `status` of the ExecCredential that a plugin printed. Raises ConfigError if it printed none."""
    if code:
        raise ConfigError(
            f"exec: {command}: process returned {code}. {errors.decode(errors='replace').strip()}".strip(". ")
        )
    try:
        credential = json.loads(output)
        if credential["apiVersion"] != version:
            raise ConfigError(f"exec: the plugin returned apiVersion {credential['apiVersion']}, expected {version}")
        status = {name: value for name, value in credential["status"].items() if value}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError(f"exec: the plugin returned no valid ExecCredential: {error!r}") from error
    if "token" not in status and not {"clientCertificateData", "clientKeyData"} <= status.keys():
        raise ConfigError("exec: the plugin returned neither a token nor a client certificate with its key")
    return status
