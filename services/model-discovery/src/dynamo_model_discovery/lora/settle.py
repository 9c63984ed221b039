"""One attempt to bring a worker to its desired state: list, unload what is stale, load what is missing, list again."""

from collections.abc import Callable

from dynamo_model_discovery.lora.adapter_state import AdapterState
from dynamo_model_discovery.lora.answers import LoraError
from dynamo_model_discovery.lora.api import Listing, WorkerApi

#: Failures in a row, some 30 seconds, after which an adapter that is loaded and not published is loaded again: publishing it may
#: take a while, and no further request to load it publishes it (https://github.com/ai-dynamo/dynamo/issues/11163).
RELOAD_AFTER = 6


async def settle(
    api: WorkerApi, state: AdapterState, clock: Callable[[], float], recent: Listing | None = None
) -> Listing | None:
    """Work towards the desired adapter; returns the last listing, None where it has to begin again.

    That is where the desired adapter changed meanwhile, and where the worker has lost it.

    `recent` is a listing that is new enough to begin with. Raises LoraError; `state` has what was reached until then.
    """
    version, adapter, worker = state.version, state.adapter, state.worker
    try:
        listing = recent or await api.listing(worker.url)
    except LoraError as error:
        if adapter is not None or error.outcome != "absent":
            raise
        # What cannot load has nothing to unload, and no request is on its way there.
        listing = Listing(frozenset(), None)
        state.unanswered.clear()
    if state.version == version and state.loaded and adapter is not None and adapter.name not in listing.names:
        state.lost()
    unloaded = False
    for name in sorted(state.stale):
        if state.version != version:
            return None
        # One that was asked for without an answer may be on its way: workers unload in turn, after what they are loading.
        if name in listing.names or name in state.unanswered:
            await _unload(api, state, listing, name)
            unloaded = True
        state.stale.discard(name)
    if unloaded and adapter is not None:
        listing = await api.listing(worker.url)
    if state.version != version:
        return None
    if adapter is not None and adapter.name not in listing.names:
        state.published = False
        await _load(api, state, listing)
        if state.version != version:
            return None
        listing = await api.listing(worker.url)
    # Before the list is heard: from then on the adapter counts.
    published = await _is_published(api, state, listing)
    if state.version != version:
        return None
    state.heard(listing.names, clock())
    if adapter is not None:
        _confirm(state, listing, adapter.name, published=published)
    state.asked = adapter is not None
    state.unanswered.clear()
    state.succeeded(version)
    return listing


async def _is_published(api: WorkerApi, state: AdapterState, listing: Listing) -> bool | None:
    """Whether frontends can know of what a worker lists; None where it does not say it now."""
    adapter = state.adapter
    if state.published or adapter is None or adapter.name not in listing.names:
        return state.published
    return await api.publishes(state.worker.url, adapter.name)


def _confirm(state: AdapterState, listing: Listing, name: str, *, published: bool | None) -> None:
    """Whether the adapter serves: the worker lists it, and frontends can know of it."""
    if not state.loaded:
        raise LoraError(
            f"{listing.path or 'the worker'} accepted the adapter, but does not list it", outcome="unlisted"
        )
    state.published = published is True
    if published is False:
        state.loaded = False
        if state.failures + 1 >= RELOAD_AFTER:
            state.stale.add(name)
        raise LoraError(
            "the worker has loaded the adapter and published no model card of it: frontends do not know it",
            outcome="unpublished",
        )


async def _unload(api: WorkerApi, state: AdapterState, listing: Listing, name: str) -> None:
    url = state.worker.url
    if await api.unload(url, listing.path, name):
        state.unanswered.discard(name)
        return
    # It may say so because there is nothing to unload.
    if name in (await api.listing(url)).names:
        raise LoraError(f"the worker does not unload {name!r}", outcome="not_unloaded")
    state.unanswered.discard(name)


async def _load(api: WorkerApi, state: AdapterState, listing: Listing) -> None:
    adapter = state.adapter
    assert adapter is not None
    state.asked = True
    try:
        await api.load(state.worker.url, listing.path, adapter)
    except LoraError as error:
        if error.unanswered:
            state.unanswered.add(adapter.name)
        raise
    except BaseException:
        # Cancelled half way: the next attempt cannot know the outcome either.
        state.unanswered.add(adapter.name)
        raise
