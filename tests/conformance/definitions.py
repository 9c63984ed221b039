"""What a cluster needs before the cases run: the orchestrators' kinds, a DeviceClass, ClusterRoles to bind."""

import asyncio
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import yaml
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import CLUSTER_ROLES, Resource
from dynamo_shared.kube import KubeClient
from dynamo_shared.kube.discovery import install_crds

from tests.building.definitions import definition_of

#: Locks the modules by version and hash.
GO_FOLDER = Path(__file__).parent / "go"
#: Folder of the definitions in each module.
MODULES = {
    "sigs.k8s.io/lws": "config/crd/bases",
    "sigs.k8s.io/gateway-api-inference-extension": "config/crd/bases",
    "github.com/ai-dynamo/grove/operator/api": "core/v1alpha1/crds",
}
#: libyaml's parser if PyYAML has it: it is ten times as fast, and the definitions have 3 MB.
LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
#: Of Volcano; the kind only needs to be served.
POD_GROUPS = Resource("scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup")
DEVICE_CLASSES = Resource("resource.k8s.io", "v1", "deviceclasses", "DeviceClass", namespaced=False)
CLUSTER_ROLE_NAMES = ("dynamo-planner", "dynamo-profiling", "dynamo-epp")


async def install(kube: KubeClient) -> None:
    """Install everything that the recorded cluster had. Needs the Go module proxy, or Go's module cache."""
    definitions = [each for module in MODULES for each in await _definitions(module)]
    await install_crds(kube, [*definitions, definition_of(POD_GROUPS)])
    device_class = {"apiVersion": DEVICE_CLASSES.api_version, "kind": "DeviceClass"}
    await kube.apply(DEVICE_CLASSES, {**device_class, "metadata": {"name": "gpu.nvidia.com"}, "spec": {}})
    for name in CLUSTER_ROLE_NAMES:
        role = {"apiVersion": CLUSTER_ROLES.api_version, "kind": "ClusterRole", "metadata": {"name": name}, "rules": []}
        await kube.apply(CLUSTER_ROLES, role)


async def _definitions(module: str) -> list[KubeObject]:
    folder = Path(await _download(module)) / MODULES[module]
    results = [yaml.load(file.read_text(), LOADER) for file in sorted(folder.glob("*.yaml"))]
    for definition in results:
        if definition["spec"]["names"]["kind"] == "LeaderWorkerSet":
            _without_rollout_enum(definition)
    return results


def _without_rollout_enum(definition: KubeObject) -> None:
    """Remove the enum that LeaderWorkerSet's own webhook, which does not run here, would satisfy by a default."""
    for version in definition["spec"]["versions"]:
        spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
        spec["rolloutStrategy"]["properties"]["type"].pop("enum", None)


async def _download(module: str) -> str:
    go = shutil.which("go")
    if go is None:
        sys.exit("Go is needed to fetch the definitions of LeaderWorkerSet, InferencePool and Grove")
    environment = {**os.environ, "GOFLAGS": "-mod=mod", "GOWORK": "off", "GOTOOLCHAIN": "local"}
    process = await asyncio.create_subprocess_exec(
        go, "mod", "download", "-json", module, cwd=GO_FOLDER, env=environment, stdout=asyncio.subprocess.PIPE
    )
    output = json.loads((await process.communicate())[0])
    if "Dir" not in output:
        sys.exit(f"{module} cannot be had: {output.get('Error', 'unknown error')}")
    return str(output["Dir"])
