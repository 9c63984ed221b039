"""`make bench-build`: DynamoNimRequests built by a real BuildKit into a real registry; takes root and runc.

Archives come from the tests' own store; `tests.builds.kubelet` runs the pods of the Jobs. `first_s` counts from the
creation of a request until its status has the image, `second_s` is the same for another request for the same archive,
and `ten_s` for ten requests at once for another tag. The benchmark fails unless the registry has each image under the
digest in the status, the second answer takes less than a second, and the ten requests cause one build.
"""

import asyncio
import io
import os
import tarfile
import time

from dynamo_devcluster.programs import Programs
from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import DYNAMO_NIM_REQUESTS, JOBS, SECRETS
from dynamo_shared.kube import KubeClient
from dynamo_shared.kube.reflector import ObjectChange, Reflector

from tests.builds import parts
from tests.builds.kubelet import BuildKubelet
from tests.builds.programs import obtain
from tests.integration.archive_store import archive_store

from .platform import NAMESPACE, bench, servers

WITHIN = 300.0
REPOSITORY = "team/yatai-bentos"
#: Limit of the second answer. Seconds.
AT_MOST = 1.0
#: No image is pulled: the archive contains the shell for its own steps.
DOCKERFILE = """FROM scratch AS work
COPY busybox /bin/busybox
RUN ["/bin/busybox", "sh", "-c", "/bin/busybox echo {text} > /built"]
FROM scratch
COPY --from=work /built /built
"""


def archive(text: str, shell: bytes) -> bytes:
    """An archive whose image has the file `/built` with this text."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as packed:
        for name, content in (("env/docker/Dockerfile", DOCKERFILE.format(text=text).encode()), ("busybox", shell)):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o755
            packed.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


async def create_request(kube: KubeClient, name: str, tag: str) -> None:
    """Create a request."""
    metadata = {"name": name, "namespace": NAMESPACE}
    obj = {**DYNAMO_NIM_REQUESTS.type_meta, "metadata": metadata, "spec": {"bentoTag": tag}}
    await kube.create(DYNAMO_NIM_REQUESTS, obj)


async def answered(kube: KubeClient, *names: str) -> list[KubeObject]:
    """The statuses of these requests, once each of them is answered."""
    results: dict[str, KubeObject] = {}
    async with asyncio.timeout(WITHIN):
        async for change in Reflector(kube, DYNAMO_NIM_REQUESTS, namespace=NAMESPACE).changes():
            if isinstance(change, ObjectChange) and change.obj.get("status", {}).get("phase") in ("Ready", "Failed"):
                results[change.obj["metadata"]["name"]] = change.obj["status"]
            if results.keys() >= set(names):
                break
    return [results[name] for name in names]


async def timed(kube: KubeClient, tag: str, *names: str) -> tuple[float, list[KubeObject]]:
    """Ask for the image of a tag under these names; the seconds until all are answered, and the answers."""
    answers = asyncio.create_task(answered(kube, *names))
    begun = time.perf_counter()
    await asyncio.gather(*(create_request(kube, name, tag) for name in names))
    statuses = await answers
    return time.perf_counter() - begun, statuses


async def run() -> str:
    """Measure, and return the line. AssertionError if a build is not as expected."""
    programs, shell = await obtain(), (await Programs().obtain("busybox")).read_bytes()
    async with servers(scheduler=False, kwok_nodes=0) as stage:
        folder = stage.directory
        with archive_store() as store:
            store.archives = {"first:v1": archive("one", shell), "ten:v1": archive("ten", shell)}
            async with (
                parts.registry(programs["registry"], folder / "registry") as registry,
                parts.buildkitd(programs["buildkitd"], folder / "buildkitd") as buildkitd,
            ):
                await stage.kube.create(SECRETS, credentials())
                os.environ |= settings(store.url, registry.host, buildkitd)
                tools = folder / "tools"
                tools.mkdir()
                (tools / "buildctl").symlink_to(programs["buildctl"])
                kubelet = BuildKubelet(stage.kube, NAMESPACE, folder / "pods", tools)
                running = asyncio.create_task(kubelet.run())
                try:
                    async with bench(stage, "watcher", "image-builder"):
                        return await measured(stage.kube, registry, kubelet)
                finally:
                    running.cancel()


async def measured(kube: KubeClient, registry: parts.Registry, kubelet: BuildKubelet) -> str:
    """The figures, once all servers run."""
    first_s, (first,) = await timed(kube, "first:v1", "one")
    assert first["phase"] == "Ready", first
    assert not first["cached"]
    assert built(registry, first) == "one\n"
    second_s, (second,) = await timed(kube, "first:v1", "two")
    assert (second["imageRef"], second["cached"]) == (first["imageRef"], True)
    assert second_s < AT_MOST, f"the second answer took {second_s:.2f} s"
    before = len(kubelet.ran)
    ten_s, statuses = await timed(kube, "ten:v1", *(f"ten-{number}" for number in range(10)))
    assert len({each["digest"] for each in statuses}) == 1
    assert built(registry, statuses[0]) == "ten\n"
    jobs = {each["job"] for each in statuses}
    assert (len(jobs), len(kubelet.ran) - before) == (1, 1)
    made = await kube.list(JOBS, NAMESPACE, label_selector=labels.IMAGE_BUILD)
    assert len(made) == 2
    return f"first_s={first_s:.2f} second_s={second_s:.2f} ten_s={ten_s:.2f} builds={len(kubelet.ran)} requests=12 ok"


def built(registry: parts.Registry, status: KubeObject) -> str:
    """The content of `/built` in the image of a status; the registry must have it under the tag and the digest."""
    name, _, digest = status["imageRef"].partition("@")
    _, of_tag = registry.manifest(REPOSITORY, name.rpartition(":")[2])
    manifest, of_digest = registry.manifest(REPOSITORY, digest)
    assert of_tag == of_digest == digest == status["digest"]
    (layer,) = manifest["layers"]
    content, _ = registry.get(f"/v2/{REPOSITORY}/blobs/{layer['digest']}")
    with tarfile.open(fileobj=io.BytesIO(content)) as files:
        member = files.extractfile("built")
        assert member is not None
        return member.read().decode()


def credentials() -> KubeObject:
    """The Secret with which builds push."""
    metadata = {"name": "push", "namespace": NAMESPACE}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"password": parts.PASSWORD}}


def settings(store: str, registry: str, buildkitd: str) -> dict[str, str]:
    """Variables of earlier operators as seed 003 prints them, and those that have no earlier name."""
    return {
        "YATAI_ENDPOINT": store,
        "YATAI_IMAGE_BUILDER_NAMESPACE": NAMESPACE,
        "BUILDKIT_URL": buildkitd,
        "DOCKER_REGISTRY_SERVER": f"{registry}/team",
        "DOCKER_REGISTRY_SECURE": "false",
        "DOCKER_REGISTRY_USERNAME": parts.USER,
        "DYNAMO_PLATFORM__IMAGE_BUILDER__REGISTRY__SECRET": "push",
    }


if __name__ == "__main__":
    print(asyncio.run(run()))
