"""One try at making one worker as it shall be: look, unload what is stale, load what is missing, and look again."""

from __future__ import annotations

from collections.abc import Callable

from dynamo_model_discovery.lora.answers import LoraError
from dynamo_model_discovery.lora.api import Listing, WorkerApi
from dynamo_model_discovery.lora.standing import Standing


async def settle(
    api: WorkerApi, standing: Standing, clock: Callable[[], float], seen: Listing | None = None
) -> Listing | None:
    """Work towards the standing's wish; returns the last listing, None where the wish changed meanwhile.

    `seen` is a listing that is new enough to begin with. Raises LoraError; what was reached until then is in the standing.
    """
    version, adapter, worker = standing.version, standing.adapter, standing.worker
    listing = seen or await api.listing(worker.url)
    unloaded = False
    for name in sorted(standing.stale):
        if standing.version != version:
            return None
        # One that was asked for without an answer may be on its way: workers unload in turn, after what they are loading.
        if name in listing.names or name in standing.unanswered:
            await _unload(api, standing, listing, name)
            unloaded = True
        standing.stale.discard(name)
    if unloaded and adapter is not None:
        listing = await api.listing(worker.url)
    if standing.version != version:
        return None
    if adapter is not None and adapter.name not in listing.names:
        await _load(api, standing, listing)
        if standing.version != version:
            return None
        listing = await api.listing(worker.url)
    if standing.version != version:
        return None
    standing.heard(listing.names, clock())
    if adapter is not None and not standing.loaded:
        raise LoraError(
            f"{listing.path or 'the worker'} accepted the adapter, but does not list it", outcome="unlisted"
        )
    standing.asked = adapter is not None
    standing.unanswered.clear()
    standing.succeeded(version)
    return listing


async def _unload(api: WorkerApi, standing: Standing, listing: Listing, name: str) -> None:
    url = standing.worker.url
    if await api.unload(url, listing.path, name):
        standing.unanswered.discard(name)
        return
    # It may say so because there is nothing to unload.
    if name in (await api.listing(url)).names:
        raise LoraError(f"the worker does not unload {name!r}", outcome="not_unloaded")
    standing.unanswered.discard(name)


async def _load(api: WorkerApi, standing: Standing, listing: Listing) -> None:
    adapter = standing.adapter
    assert adapter is not None
    standing.asked = True
    try:
        await api.load(standing.worker.url, listing.path, adapter)
    except LoraError as error:
        if error.unanswered:
            standing.unanswered.add(adapter.name)
        raise
    except BaseException:
        # Ended in the middle: whoever goes on cannot know either.
        standing.unanswered.add(adapter.name)
        raise
