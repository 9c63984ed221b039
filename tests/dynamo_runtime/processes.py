"""Mocker workers and frontends of the real runtime as child processes, with etcd and NATS or with files for discovery."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dynamo_devcluster.ports import LOOPBACK, free_port
from dynamo_devcluster.probe import PROBE_WITHIN, LocalHttp
from dynamo_devcluster.process import ManagedProcess

from .environment import RuntimeEnvironment

READY_WITHIN = 60.0
"""Seconds; 3 s are usual on an idle machine."""

LEASE_TTL = 10
"""Seconds for which a killed process stays registered."""

#: The name of an endpoint that accepts requests in a worker's /health.
_REGISTERED = re.compile(rb'"endpoints"\s*:\s*\{[^}]*"ready"')


@dataclass(frozen=True)
class Planes:
    """How the processes of one Dynamo deployment discover each other: arguments and environment variables."""

    arguments: tuple[str, ...]
    environ: Mapping[str, str] = field(default_factory=dict)


def etcd_planes(etcd_url: str, nats_url: str, *, lease_ttl: int = LEASE_TTL) -> Planes:
    """Discovery in etcd, events over NATS, requests over TCP. `lease_ttl`: seconds; the runtime's own default is 30."""
    return Planes(
        ("--discovery-backend", "etcd", "--request-plane", "tcp", "--event-plane", "nats"),
        {"ETCD_ENDPOINTS": etcd_url, "NATS_SERVER": nats_url, "ETCD_LEASE_TTL": str(lease_ttl)},
    )


def file_planes(directory: Path) -> Planes:
    """Discovery in files below a directory, events over ZMQ, requests over TCP: no server needed."""
    return Planes(
        ("--discovery-backend", "file", "--request-plane", "tcp", "--event-plane", "zmq"),
        {"DYN_FILE_KV": str(directory)},
    )


def kubernetes_planes(kubeconfig: Path) -> Planes:
    """Discovery in DynamoWorkerMetadata, events over ZMQ, requests over TCP. Each process needs a pod: see `as_pod`."""
    return Planes(
        ("--discovery-backend", "kubernetes", "--request-plane", "tcp", "--event-plane", "zmq"),
        {"KUBECONFIG": str(kubeconfig)},
    )


def as_pod(pod: Mapping[str, Any]) -> dict[str, str]:
    """Variables by which a process identifies as that pod's container."""
    metadata = pod["metadata"]
    return {"POD_NAME": metadata["name"], "POD_NAMESPACE": metadata["namespace"], "POD_UID": metadata["uid"]}


@dataclass(frozen=True)
class Runtime:
    """Creates the processes of one deployment; the caller starts and stops them."""

    environment: RuntimeEnvironment
    model: Path
    planes: Planes
    logs: Path
    namespace: str = "dynamo"
    model_name: str = "tiny"
    extra_environ: Mapping[str, str] = field(default_factory=dict)

    def mocker(
        self, name: str, mode: str = "agg", *extra: str, environ: Mapping[str, str] | None = None
    ) -> ManagedProcess:
        """A worker process. `mode`: agg, prefill or decode; `extra`: further arguments of `dynamo.mocker`.

        It is ready when its endpoints are registered.
        """
        port = free_port()
        http = LocalHttp(port)
        command = [
            str(self.environment.python), "-m", "dynamo.mocker", "--model-path", str(self.model),
            "--model-name", self.model_name, "--num-gpu-blocks-override", "512", "--block-size", "16",
            "--speedup-ratio", "10", "--disaggregation-mode", mode, *self.planes.arguments,
        ]  # fmt: skip
        if mode == "prefill":
            command += ["--bootstrap-ports", str(free_port())]
        variables = {
            **self._environ(),
            "DYN_SYSTEM_HOST": LOOPBACK,
            "DYN_SYSTEM_PORT": str(port),
            "DYN_SYSTEM_STARTING_HEALTH_STATUS": "ready",
            **(environ or {}),
        }

        async def ready() -> bool:
            status, body = await http.request("GET", "/health", within=PROBE_WITHIN)
            return status == 200 and _REGISTERED.search(body) is not None

        return self._process(name, [*command, *extra], ready, variables)

    def frontend(self, name: str = "frontend", *, port: int = 0) -> Frontend:
        """A frontend process; it is ready when it answers, with or without workers."""
        port = port or free_port()
        http = LocalHttp(port)
        command = [
            str(self.environment.python), "-m", "dynamo.frontend", "--http-host", LOOPBACK, "--http-port", str(port),
            "--router-mode", "kv", *self.planes.arguments,
        ]  # fmt: skip
        return Frontend(self._process(name, command, lambda: http.ok("/live"), self._environ()), http)

    def _process(self, name: str, command: list[str], ready, environ: dict[str, str]) -> ManagedProcess:
        return ManagedProcess(
            name, command, self.logs / f"{name}.log", ready, ready_within=READY_WITHIN, environ=environ
        )

    def _environ(self) -> dict[str, str]:
        # Without variables of this machine that would misdirect the runtime.
        kept = {name: value for name, value in os.environ.items() if name in {"PATH", "HOME", "TMPDIR", "LANG"}}
        return {
            **kept,
            "HF_HUB_OFFLINE": "1",
            "DYN_LOG": "info",
            "DYN_NAMESPACE": self.namespace,
            "DYN_TCP_RPC_HOST": LOOPBACK,
            **self.planes.environ,
            **self.extra_environ,
        }


@dataclass(frozen=True)
class Frontend:
    """A frontend's process and its HTTP interface."""

    process: ManagedProcess
    http: LocalHttp

    async def models(self) -> list[str]:
        """Names of the models that it serves now."""
        status, body = await self.http.request("GET", "/v1/models")
        return [entry["id"] for entry in json.loads(body).get("data", [])] if status == 200 else []

    async def chat(self, model: str, text: str = "Hello", max_tokens: int = 8) -> tuple[int, dict[str, Any]]:
        """Status and answer of one chat completion."""
        body = {"model": model, "max_tokens": max_tokens, "messages": [{"role": "user", "content": text}]}
        status, answer = await self.http.request("POST", "/v1/chat/completions", body)
        try:
            return status, json.loads(answer)
        except ValueError:
            return status, {"raw": answer.decode(errors="replace")}
