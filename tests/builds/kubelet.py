"""Runs the pods of build Jobs as processes of this machine: their commands and variables, each in its own folder."""

import asyncio
import base64
import os
import sys
from pathlib import Path

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import PODS, SECRETS, ObjectKey
from dynamo_shared.kube import KubeClient

POLL = 0.1
WORKSPACE = "/workspace"


class BuildKubelet:
    """Runs each pod of a build once. `programs`: the folder of buildctl."""

    def __init__(self, kube: KubeClient, namespace: str, folder: Path, programs: Path) -> None:
        self._kube = kube
        self._namespace = namespace
        self._folder = folder
        self._programs = programs
        self.ran: list[str] = []

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            listed = await self._kube.list(PODS, self._namespace, label_selector=labels.IMAGE_BUILD)
            for pod in listed:
                if pod["metadata"]["uid"] not in self.ran:
                    self.ran.append(pod["metadata"]["uid"])
                    await self._run(pod)
            await asyncio.sleep(POLL)

    async def _run(self, pod: KubeObject) -> None:
        workspace = self._folder / pod["metadata"]["uid"]
        workspace.mkdir(parents=True)
        ended: dict[str, list[KubeObject]] = {"initContainerStatuses": [], "containerStatuses": []}
        code = 0
        for kind, containers in (("initContainers", "initContainerStatuses"), ("containers", "containerStatuses")):
            for container in pod["spec"][kind]:
                if code == 0:
                    code, message = await self._container(container, workspace)
                    ended[containers].append(_status(container, code, message))
        status = {"phase": "Failed" if code else "Succeeded", **ended}
        key = ObjectKey(self._namespace, pod["metadata"]["name"])
        await self._kube.merge_patch(PODS, key, {"status": status}, subresource="status")

    async def _container(self, container: KubeObject, workspace: Path) -> tuple[int, str]:
        program, flag, script, *arguments = container["command"]
        message = workspace / f"message-{container['name']}"
        process = await asyncio.create_subprocess_exec(
            sys.executable if program == "python3" else program,
            flag,
            script,
            *(each.replace(WORKSPACE, str(workspace)) for each in arguments),
            env={
                **{each["name"]: await self._value(each, workspace) for each in container["env"]},
                "PATH": f"{self._programs}:{os.environ['PATH']}",
                "WORKSPACE": str(workspace),
                "TERMINATION_LOG": str(message),
            },
            stdout=asyncio.subprocess.DEVNULL,
        )
        code = await process.wait()
        return code, message.read_text() if message.exists() else ""

    async def _value(self, variable: KubeObject, workspace: Path) -> str:
        if "valueFrom" not in variable:
            return str(variable["value"]).replace(WORKSPACE, str(workspace))
        ref = variable["valueFrom"]["secretKeyRef"]
        secret = await self._kube.get(SECRETS, ObjectKey(self._namespace, ref["name"]))
        return base64.b64decode(secret["data"][ref["key"]]).decode()


def _status(container: KubeObject, code: int, message: str) -> KubeObject:
    end = {"exitCode": code, "message": message, "reason": "Error" if code else "Completed"}
    about = {"image": container["image"], "imageID": "", "ready": False, "restartCount": 0}
    return {"name": container["name"], **about, "state": {"terminated": end}}
