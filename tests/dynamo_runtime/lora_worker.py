"""A worker of the real runtime with LoRA management and without an engine; the runtime's own interpreter runs it.

Its handlers answer as `dynamo.vllm` does (ai-dynamo 1.6); routes, escaping, statuses and bodies are the runtime's. With
`MODEL`, the folder of its base model, it publishes cards of that and of loaded adapters, except sources named
`unpublished`.
"""

import asyncio
import os
from collections.abc import AsyncIterator
from typing import Any

from dynamo.llm import ModelInput, ModelType, WorkerType, register_model  # type: ignore[import-not-found]
from dynamo.runtime import DistributedRuntime  # type: ignore[import-not-found]

_loaded: dict[str, str] = {}
_model = os.environ.get("MODEL", "")
_endpoints: list[Any] = []


async def publish(lora: str = "") -> None:
    """Register the base model, or an adapter of it, at the endpoint that would serve it."""
    names = {"lora_name": lora, "base_model_path": _model} if lora else {"model_name": "tiny"}
    await register_model(
        ModelInput.Tokens, ModelType.Chat, _endpoints[0], _model, **names, worker_type=WorkerType.Aggregated
    )


async def generate(_: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
    """Required by the endpoint; no test calls it."""
    yield {}


async def load(request: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
    """Like vLLM's handler: an adapter that is loaded already stays unchanged."""
    name, uri = request["lora_name"], request["source"]["uri"]
    if "missing" in uri:
        yield {"status": "error", "message": f"LoRA not found at {uri}"}
        return
    if _loaded.setdefault(name, uri) == uri and _model and "unpublished" not in uri:
        await publish(name)
    yield {
        "status": "success",
        "message": f"LoRA adapter '{name}' loaded successfully",
        "lora_name": name,
        "lora_id": 7,
    }


async def unload(request: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
    """Like vLLM's handler."""
    name = request["lora_name"]
    if _loaded.pop(name, None) is None:
        yield {"status": "error", "message": f"LoRA adapter '{name}' not found. Available LoRAs: {list(_loaded)}"}
        return
    yield {
        "status": "success",
        "message": f"LoRA adapter '{name}' unloaded successfully",
        "lora_name": name,
        "lora_id": 7,
    }


async def list_(_: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
    """Like vLLM's handler."""
    yield {"status": "success", "loras": dict.fromkeys(_loaded, 7), "count": len(_loaded)}


async def main() -> None:
    """Serve until killed."""
    runtime = DistributedRuntime(
        asyncio.get_running_loop(), os.environ.get("DISCOVERY", "mem"), "tcp", event_plane="zmq"
    )
    base = f"{os.environ.get('DYN_NAMESPACE', 'dynamo')}.backend"
    handlers = {"generate": generate, "load_lora": load, "unload_lora": unload, "list_loras": list_}
    endpoints = {name: runtime.endpoint(f"{base}.{name}") for name in handlers}
    _endpoints.append(endpoints["generate"])
    serving = [asyncio.ensure_future(endpoints[name].serve_endpoint(each)) for name, each in handlers.items()]
    if _model:
        await publish()
    await asyncio.gather(*serving)


if __name__ == "__main__":
    asyncio.run(main())
