"""A worker of the real runtime that has LoRA management and no engine: run by the interpreter of the runtime's environment.

What its handlers answer is what `dynamo.vllm` answers (ai-dynamo 1.6); routes, escaping, statuses and bodies are the runtime's.
"""

import asyncio
import os
from collections.abc import AsyncIterator
from typing import Any

from dynamo.runtime import DistributedRuntime  # type: ignore[import-not-found]

_loaded: dict[str, str] = {}


async def load(request: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
    """As the handler of vLLM: what is loaded already stays as it is."""
    name, uri = request["lora_name"], request["source"]["uri"]
    if "missing" in uri:
        yield {"status": "error", "message": f"LoRA not found at {uri}"}
        return
    _loaded.setdefault(name, uri)
    yield {
        "status": "success",
        "message": f"LoRA adapter '{name}' loaded successfully",
        "lora_name": name,
        "lora_id": 7,
    }


async def unload(request: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
    """As the handler of vLLM."""
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
    """As the handler of vLLM."""
    yield {"status": "success", "loras": dict.fromkeys(_loaded, 7), "count": len(_loaded)}


async def main() -> None:
    """Serve until killed."""
    runtime = DistributedRuntime(asyncio.get_running_loop(), "mem", "tcp", event_plane="zmq")
    base = f"{os.environ.get('DYN_NAMESPACE', 'dynamo')}.backend"
    handlers = {"load_lora": load, "unload_lora": unload, "list_loras": list_}
    await asyncio.gather(*(runtime.endpoint(f"{base}.{name}").serve_endpoint(each) for name, each in handlers.items()))


if __name__ == "__main__":
    asyncio.run(main())
