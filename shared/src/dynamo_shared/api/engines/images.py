"""Images of the profiler, and of engines, derived from the image that a request names (planner.md, b.2)."""

from dynamo_shared.api.engines.table import BACKENDS

#: Repository of Dynamo's images, unless the settings name a mirror.
REPOSITORY = "nvcr.io/nvidia/ai-dynamo"


def profiler_image(*, repository: str, version: str) -> str:
    """Image of requests that name none."""
    return f"{repository.rstrip('/')}/dynamo-planner:{version}"


def runtime_image(backend: str, named: str | None, *, repository: str, version: str) -> str:
    """Image of a backend's workers: in the repository of the named image, with its tag; without a name, the platform's
    default.

    A digest identifies only the named image: for `name@sha256:...` the tag before the digest is used, otherwise the
    platform's version.
    """
    runtime = BACKENDS[backend].runtime
    if not named:
        return f"{repository.rstrip('/')}/{runtime}:{version}"
    reference, _, digest = named.partition("@")
    folder, _, last = reference.rpartition("/")
    name, _, tag = last.partition(":")
    if name == runtime:
        return named
    derived = f"{runtime}:{tag or (version if digest else 'latest')}"
    return f"{folder}/{derived}" if folder else derived
