"""Compares rendered with recorded objects, without an API server to set defaults.

The recorded objects have the API server's defaults. `normalized` adds the same defaults to a rendered object, from
the table below, so that both must be equal: this detects a field that only we set, and a recorded field that neither
we nor the defaults set.
"""

import copy
import functools
import importlib.util
import json
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from dynamo_shared.api.objects import KubeObject

ROOT = Path(__file__).parents[3]
CONFORMANCE = ROOT.parent / "shared" / "conformance"
CASES = CONFORMANCE / "cases"
MUST = CONFORMANCE / "must-run"

#: The API server's defaults by type of the part. Never a field that rendering decides.
CONTAINER = {"resources": {}, "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"}
PROBE = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
POD = {"dnsPolicy": "ClusterFirst", "schedulerName": "default-scheduler"}
DEPLOYMENT = {"revisionHistoryLimit": 10, "progressDeadlineSeconds": 600}
DEFAULT_MODE = 0o644


@functools.cache
def canonical_module() -> ModuleType:
    """`canonical.py` of the conformance folder: what a comparison drops and replaces."""
    spec = importlib.util.spec_from_file_location("conformance_canonical", CONFORMANCE / "canonical.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def load(path: Path) -> KubeObject:
    case: KubeObject = json.loads(path.read_text())
    return case


def normalized(obj: KubeObject) -> KubeObject:
    """A rendered object as the API server would store it."""
    obj = copy.deepcopy(obj)
    if obj["kind"] == "Deployment":
        _fill(obj["spec"], DEPLOYMENT)
        _pod(obj["spec"]["template"]["spec"])
    if obj["kind"] == "ResourceClaimTemplate":
        _fill(obj["spec"], {"metadata": {}})
    return obj


def _pod(pod: KubeObject) -> None:
    _fill(pod, POD)
    pod["serviceAccount"] = pod["serviceAccountName"]
    for container in [*pod["containers"], *pod.get("initContainers", [])]:
        _container(container)
    for volume in pod.get("volumes", []):
        for source in ("configMap", "secret", "downwardAPI", "projected"):
            if source in volume:
                _fill(volume[source], {"defaultMode": DEFAULT_MODE})


def _container(container: KubeObject) -> None:
    _fill(container, CONTAINER)
    _fill(container, {"imagePullPolicy": "Always" if _latest(container["image"]) else "IfNotPresent"})
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        if name in container:
            _fill(container[name], PROBE)
            if "httpGet" in container[name]:
                _fill(container[name]["httpGet"], {"scheme": "HTTP"})
    for variable in container.get("env", []):
        if "fieldRef" in variable.get("valueFrom", {}):
            _fill(variable["valueFrom"]["fieldRef"], {"apiVersion": "v1"})
    for side in container["resources"].values():
        if isinstance(side, dict):
            side.update({key: str(value) for key, value in side.items()})


def _latest(image: str) -> bool:
    """Whether an image counts as one with a moving tag: it is a valid name without a tag, or with `latest`."""
    name, _, tag = image.rsplit("/", 1)[-1].partition(":")
    return bool(re.fullmatch(r"[a-z0-9._-]+", name)) and tag in ("", "latest")


def _fill(part: KubeObject, defaults: KubeObject) -> None:
    for key, value in defaults.items():
        part.setdefault(key, copy.deepcopy(value))


def differences(expected: Any, actual: Any, path: str = "") -> list[str]:
    """The paths at which two JSON values differ."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        return [
            line
            for key in sorted(expected.keys() | actual.keys())
            for line in differences(expected.get(key), actual.get(key), f"{path}.{key}")
        ]
    if isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        return [
            line
            for index, pair in enumerate(zip(expected, actual, strict=True))
            for line in differences(*pair, f"{path}[{index}]")
        ]
    return [] if expected == actual else [f"{path}: expected {expected!r}, rendered {actual!r}"]
