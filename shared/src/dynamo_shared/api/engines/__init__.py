"""Commands of engines, one file a backend: from sizes to flags."""

from __future__ import annotations

from dynamo_shared.api.engines import mocker, sglang, trtllm, vllm
from dynamo_shared.api.engines.command import Command, Role

BACKENDS = {"vllm": vllm.command, "sglang": sglang.command, "trtllm": trtllm.command}

__all__ = ["BACKENDS", "Command", "Role", "mocker"]
