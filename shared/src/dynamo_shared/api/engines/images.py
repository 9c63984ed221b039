"""Images of engines, derived from the image that a request names (planner.md, b.2)."""

from dynamo_shared.api.engines.table import BACKENDS


def runtime_image(backend: str, named: str | None, *, repository: str, version: str) -> str:
    """Image of a backend's workers: next to the named one, with its tag; the platform's own by default.

    A digest is of one image alone, so with `name@sha256:...` the tag before it counts, or else the platform's version.
    """
    runtime = BACKENDS[backend].runtime
    if not named:
        return f"{repository.rstrip('/')}/{runtime}:{version}"
    reference, _, digest = named.partition("@")
    folder, _, last = reference.rpartition("/")
    name, _, tag = last.partition(":")
    if name == runtime:
        return named
    made = f"{runtime}:{tag or (version if digest else 'latest')}"
    return f"{folder}/{made}" if folder else made
