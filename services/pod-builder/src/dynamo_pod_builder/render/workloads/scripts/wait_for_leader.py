"""Wait until the leader of this replica takes connections. Runs in the engine's image, with nothing but Python.

A leader that is being replaced may still answer under its old address, so the pod behind the address must run and not be
on its way out. Where Kubernetes does not let us look, an open port has to do.
"""

from __future__ import annotations

import json
import os
import socket
import ssl
import time
import urllib.request
from pathlib import Path
from typing import Any

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
#: Seconds.
LOOK_EVERY = 5.0
TELL_EVERY = 30.0


def api_server() -> str:
    """Where Kubernetes answers. KeyError where that is not known."""
    host = os.environ["KUBERNETES_SERVICE_HOST"]
    host = f"[{host}]" if ":" in host else host
    return f"https://{host}:{os.environ['KUBERNETES_SERVICE_PORT']}"


def pods_at(address: str) -> list[dict[str, Any]]:
    """Pods of our namespace that have the address. OSError, KeyError or ValueError where Kubernetes does not tell."""
    namespace = (ACCOUNT / "namespace").read_text().strip()
    url = f"{api_server()}/api/v1/namespaces/{namespace}/pods?fieldSelector=status.podIP={address}"
    token = (ACCOUNT / "token").read_text().strip()
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"})  # noqa: S310 - https
    trusted = ssl.create_default_context(cafile=ACCOUNT / "ca.crt")
    with urllib.request.urlopen(request, context=trusted, timeout=5) as answer:  # noqa: S310
        found: list[dict[str, Any]] = json.load(answer).get("items", [])
    return found


def objection(address: str) -> str:
    """Why no pod at an address is the leader to wait for; empty where one is, or where that cannot be known."""
    try:
        pods = pods_at(address)
    except (OSError, KeyError, ValueError):
        return ""
    if not pods:
        return f"no pod has the address {address}"
    # The pods of a Job that is done still have theirs, which may be the leader's by now.
    objections = [objection_to(pod) for pod in pods]
    return "" if "" in objections else ", ".join(objections)


def objection_to(pod: dict[str, Any]) -> str:
    """Why a pod is not the leader to wait for, or empty."""
    name, phase = pod["metadata"]["name"], pod.get("status", {}).get("phase")
    if "deletionTimestamp" in pod["metadata"]:
        return f"pod {name} is terminating"
    return "" if phase == "Running" else f"pod {name} is {phase}"


def lacking(host: str, port: int) -> str:
    """What the leader lacks until it is there; empty when it is."""
    try:
        resolved = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError:
        return "its name does not resolve"
    # Kubernetes finds a pod by the first of its addresses alone, and the name may have one of either family.
    lacks = [lacking_at(str(sockaddr[0]), port) for *_, sockaddr in resolved]
    return "" if "" in lacks else ", ".join(lacks)


def lacking_at(address: str, port: int) -> str:
    """What the leader lacks at one of its addresses, or empty."""
    if found := objection(address):
        return found
    try:
        socket.create_connection((address, port), timeout=2).close()
    except OSError as error:
        return f"port {port}: {error}"
    return ""


def main() -> None:
    """Return when the leader is there."""
    host, port = os.environ["LEADER_HOST"], int(os.environ["LEADER_PORT"])
    print(f"waiting for the leader at {host}:{port}", flush=True)
    began = told = time.monotonic()
    # Another replica's leader may still hold the name for a moment.
    time.sleep(LOOK_EVERY)
    while found := lacking(host, port):
        now = time.monotonic()
        if now - told >= TELL_EVERY:
            print(f"still waiting after {now - began:.0f} s: {found}", flush=True)
            told = now
        time.sleep(LOOK_EVERY)
    print(f"the leader is there after {time.monotonic() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
