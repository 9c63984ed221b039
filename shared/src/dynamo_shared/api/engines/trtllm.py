"""The command that starts TensorRT-LLM."""

import json
from typing import Any

from dynamo_shared.api.engines.command import Command, EngineSpec, Role, rounded_up

_BLOCK = 32
#: Fraction of the free memory for the KV cache; the runtime's default.
_CACHE_SHARE = 0.9
#: Additional tokens in a batch: padding of a chunk, and one token for each sequence in decode.
_EXTRA_TOKENS = 512


def command(spec: EngineSpec) -> Command:
    """The command of a worker. Its tensor parallel size is the number of GPUs of a pipeline stage; attention is data
    parallel over all of them, or not at all.
    """
    engine, role = spec.engine, spec.role
    args = ["--model-path", spec.path, "--served-model-name", spec.model]
    args += ["--tensor-parallel-size", str(engine.tp * engine.dp)]
    if engine.pp > 1:
        args += ["--pipeline-parallel-size", str(engine.pp)]
    if engine.moe_ep > 1:
        args += ["--expert-parallel-size", str(engine.moe_ep)]
    if engine.dp > 1:
        args.append("--enable-attention-dp")
    args += ["--kv-block-size", str(_BLOCK)]
    if engine.batch_size:
        tokens = engine.batch_size if role is Role.DECODE else spec.isl * _prompts(spec)
        args += ["--max-batch-size", str(engine.batch_size)]
        args += ["--max-num-tokens", str(rounded_up(tokens + (0 if role is Role.DECODE else _EXTRA_TOKENS)))]
    if role.disaggregated:
        args += ["--disaggregation-mode", role.value]
    if settings := _settings(spec):
        args += ["--override-engine-args", json.dumps(settings, separators=(",", ":"))]
    return Command(command=("python3", "-m", "dynamo.trtllm"), args=tuple(args), working_dir="/workspace")


def _prompts(spec: EngineSpec) -> int:
    return (spec.engine.batch_size or 1) if spec.role is Role.PREFILL else 1


def _settings(spec: EngineSpec) -> dict[str, Any]:
    """Settings without flags: chunked prefill, format and transfer of the KV cache, and no overlap scheduler for prefill."""
    settings: dict[str, Any] = {}
    if spec.role is not Role.DECODE and spec.engine.batch_size and not spec.latent:
        # Without it, prompts that exceed the token limit would be refused. Not all MLA kernels support it.
        settings["enable_chunked_prefill"] = True
    if spec.role.disaggregated:
        settings["cache_transceiver_config"] = {"backend": "DEFAULT"}
    if spec.engine.eight_bit_cache:
        # It replaces all flags of the KV cache.
        share = {"free_gpu_memory_fraction": _CACHE_SHARE, "tokens_per_block": _BLOCK}
        settings["kv_cache_config"] = {"dtype": "fp8", **share}
    if spec.role is Role.PREFILL:
        settings["disable_overlap_scheduler"] = True
    return settings
