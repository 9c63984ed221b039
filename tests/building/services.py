"""Services of the platform as separate processes on this machine."""

import sys
from pathlib import Path
from typing import Any

import yaml
from dynamo_devcluster import ManagedProcess
from dynamo_devcluster.probe import LocalHttp


def configuration(
    health: int, metrics: int, webhook: int, platform: dict[str, Any], **sections: dict[str, Any]
) -> dict[str, Any]:
    """A configuration whose ports belong to this machine; `webhook` is 0 without admission."""
    local = "127.0.0.1"
    server = {
        "healthProbe": {"bindAddress": local, "port": health},
        "metrics": {"bindAddress": local, "port": metrics, "secure": False},
        **({"webhook": {"host": local, "port": webhook}} if webhook else {}),
    }
    return {
        "apiVersion": "operator.config.dynamo.nvidia.com/v1alpha1",
        "kind": "OperatorConfiguration",
        "server": server,
        "platform": platform,
        **sections,
    }


def service_process(
    name: str, services: tuple[str, ...], config: Path, configured: dict[str, Any], ready: str = "/readyz", **more: Any
) -> ManagedProcess:
    """`dynamoctl run` with a configuration, which is written here; its log is next to it.

    `ready` is a path that answers once the service has started; empty: do not wait.
    """
    config.write_text(yaml.safe_dump(configured))
    config.chmod(0o600)
    probe = LocalHttp(configured["server"]["healthProbe"]["port"])
    return ManagedProcess(
        name,
        [sys.executable, "-m", "dynamo_ctl", "run", *services, "--config", config],
        config.with_name(f"{name}.log"),
        (lambda: probe.ok(ready)) if ready else None,
        **more,
    )
