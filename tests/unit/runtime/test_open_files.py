"""The limit of open files is raised to the maximum: containerd starts containers with a soft limit of 1,024."""

import resource
import subprocess
import sys

import pytest
from dynamo_shared.runtime import open_files

#: A platform without an API server, with a soft limit of 256; its last line is the limit that it then has.
STARTED = """
import asyncio, resource
from dynamo_shared.kube import ConfigError
from dynamo_shared.runtime import load_settings, running

resource.setrlimit(resource.RLIMIT_NOFILE, (256, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
names = {"DYNAMO_SERVER__HEALTH_PROBE__BIND_ADDRESS": "127.0.0.1", "DYNAMO_SERVER__HEALTH_PROBE__PORT": "0"}
settings = load_settings(None, {**names, "DYNAMO_PLATFORM__KUBERNETES__KUBECONFIG": "/dev/null"})

async def main():
    try:
        async with running([], settings):
            pass
    except ConfigError:
        print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])

asyncio.run(main())
"""


def test_a_platform_raises_its_limit_at_the_start() -> None:
    said = subprocess.run([sys.executable, "-c", STARTED], capture_output=True, text=True, check=True, timeout=60)
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    assert int(said.stdout.split()[-1]) == min(hard, 1 << 20)


@pytest.mark.parametrize(
    ("soft", "hard", "raised"),
    [
        (1024, 524_288, (524_288, 524_288)),
        (1024, 1 << 30, (1 << 20, 1 << 30)),
        (1024, resource.RLIM_INFINITY, (1 << 20, resource.RLIM_INFINITY)),
        (4096, 4096, None),
        (1 << 21, 1 << 21, None),
        (resource.RLIM_INFINITY, resource.RLIM_INFINITY, None),
    ],
)
def test_the_limit_is_raised_only_as_far_as_allowed_and_useful(
    soft: int, hard: int, raised: tuple[int, int] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: calls.append(limits))
    open_files.allow_most()
    assert calls == ([raised] if raised else [])


def test_a_system_that_refuses_keeps_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise ValueError("current limit exceeds maximum limit")

    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, resource.RLIM_INFINITY))
    monkeypatch.setattr(resource, "setrlimit", refuse)
    open_files.allow_most()
