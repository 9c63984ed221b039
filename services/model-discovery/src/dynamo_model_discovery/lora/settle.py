"""One attempt to bring a worker to its desired state: list, unload stale adapters, load missing ones, list again."""

from collections.abc import Callable

from dynamo_model_discovery.lora.adapter_state import AdapterState
from dynamo_model_discovery.lora.api import Listing, WorkerApi
from dynamo_model_discovery.lora.responses import LoraError

#: Number of consecutive failures (about 30 seconds) after which a loaded but unpublished adapter is unloaded and loaded
#: again: publishing may take some time, and another load request does not publish the adapter
#: (https://github.com/ai-dynamo/dynamo/issues/11163).
RELOAD_AFTER = 6


async def settle(
    api: WorkerApi, state: AdapterState, clock: Callable[[], float], recent: Listing | None = None
) -> Listing | None:
    """Bring the worker to its desired adapter; returns the last listing. `recent` is a listing to begin with.

    Returns None if the attempt must be repeated: the desired adapter changed meanwhile, or the worker has lost its
    adapter. Raises LoraError; `state` then has the progress so far.
    """
    version, adapter, worker = state.version, state.adapter, state.worker
    try:
        listing = recent or await api.listing(worker.url)
    except LoraError as error:
        if adapter is not None or error.outcome != "absent":
            raise
        # A worker without the API has no adapters and no pending requests.
        listing = Listing(frozenset(), None)
        state.unanswered.clear()
    if state.version == version and state.loaded and adapter is not None and adapter.name not in listing.names:
        state.lost()
    unloaded = False
    for name in sorted(state.stale):
        if state.version != version:
            return None
        # A load without a response may still run; the worker unloads only after it has finished loading.
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
    # Checked before the listing is recorded, because the adapter is reported as loaded from then on.
    published = await _is_published(api, state, listing)
    if state.version != version:
        return None
    state.record_listing(listing.names, clock())
    if adapter is not None:
        _confirm(state, listing, adapter.name, published=published)
    state.requested = adapter is not None
    state.unanswered.clear()
    state.succeeded(version)
    return listing


async def _is_published(api: WorkerApi, state: AdapterState, listing: Listing) -> bool | None:
    """Whether the worker has published its listed adapter; None if the worker does not respond now."""
    adapter = state.adapter
    if state.published or adapter is None or adapter.name not in listing.names:
        return state.published
    return await api.publishes(state.worker.url, adapter.name)


def _confirm(state: AdapterState, listing: Listing, name: str, *, published: bool | None) -> None:
    """Raises LoraError unless the worker lists the adapter and has published it."""
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
            "the worker loaded the adapter, but published no model card for it: frontends do not know the adapter",
            outcome="unpublished",
        )


async def _unload(api: WorkerApi, state: AdapterState, listing: Listing, name: str) -> None:
    url = state.worker.url
    if await api.unload(url, listing.path, name):
        state.unanswered.discard(name)
        return
    # The worker may refuse because the adapter is not loaded.
    if name in (await api.listing(url)).names:
        raise LoraError(f"the worker still lists {name!r} after a request to unload it", outcome="not_unloaded")
    state.unanswered.discard(name)


async def _load(api: WorkerApi, state: AdapterState, listing: Listing) -> None:
    adapter = state.adapter
    assert adapter is not None
    state.requested = True
    try:
        await api.load(state.worker.url, listing.path, adapter)
    except LoraError as error:
        if error.unanswered:
            state.unanswered.add(adapter.name)
        raise
    except BaseException:
        # After a cancellation the outcome of the request is unknown.
        state.unanswered.add(adapter.name)
        raise
