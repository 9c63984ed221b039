"""Limits of a process: open files, and how often garbage is collected."""

import gc
import resource
import subprocess
import sys
import weakref

import pytest
from dynamo_shared.runtime.process import allow_open_files, rare_collections

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
    allow_open_files()
    assert calls == ([raised] if raised else [])


def test_a_system_that_refuses_keeps_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise ValueError("current limit exceeds maximum limit")

    monkeypatch.setattr(resource, "getrlimit", lambda _: (256, resource.RLIM_INFINITY))
    monkeypatch.setattr(resource, "setrlimit", refuse)
    allow_open_files()


class Cycle:
    def __init__(self) -> None:
        self.itself = self


def test_objects_from_before_the_start_are_not_traversed_until_the_end() -> None:
    before, frozen = gc.get_threshold(), gc.get_freeze_count()
    gc.set_threshold(pythons := 700, *before[1:])
    try:
        with rare_collections():
            assert gc.get_threshold()[0] > pythons
            assert gc.get_freeze_count() > frozen
        assert gc.get_threshold()[0] == pythons
        assert gc.get_freeze_count() == 0
    finally:
        gc.set_threshold(*before)


def test_cycles_created_after_the_start_are_collected() -> None:
    with rare_collections():
        gone = weakref.ref(Cycle())
        gc.collect()
        assert gone() is None
