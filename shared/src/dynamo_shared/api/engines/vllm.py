"""The command that starts vLLM."""

from dynamo_shared.api.engines.command import Command, EngineSpec, Role, rounded_up

_TRANSFER = '{"kv_connector":"NixlConnector","kv_role":"kv_both"}'
#: Tokens of a KV block: vLLM's default, and the size for MLA kernels (FlashMLA).
_BLOCK, _LATENT_BLOCK = 16, 64


def command(spec: EngineSpec) -> Command:
    """The command of a worker. Flags and values are separate arguments, by which rendering recognizes multi-node flags."""
    engine, role = spec.engine, spec.role
    args = ["--model", spec.path, "--served-model-name", spec.model]
    args += ["--tensor-parallel-size", str(engine.tp)]
    if engine.pp > 1:
        args += ["--pipeline-parallel-size", str(engine.pp)]
    if engine.dp > 1:
        args += ["--data-parallel-size", str(engine.dp)]
    if engine.moe_ep > 1:
        args.append("--enable-expert-parallel")
    args += ["--block-size", str(_LATENT_BLOCK if spec.latent else _BLOCK)]
    if spec.longest is not None:
        # Other engines limit the length to the capacity of their cache.
        args += ["--max-model-len", str(spec.longest)]
    if engine.eight_bit_cache:
        args += ["--kv-cache-dtype", "fp8"]
    if engine.batch_size:
        # Prefill is limited by tokens, decode by sequences; both limits are those of one data-parallel rank.
        if role is not Role.PREFILL:
            args += ["--max-num-seqs", str(engine.batch_size)]
        if role is not Role.DECODE:
            prompts = engine.batch_size if role is Role.PREFILL else 1
            decoding = 0 if role is Role.PREFILL else engine.batch_size
            args += ["--max-num-batched-tokens", str(rounded_up(spec.isl * prompts + decoding))]
    if role.disaggregated:
        args += ["--disaggregation-mode", role.value, "--kv-transfer-config", _TRANSFER]
    return Command(
        command=("python3", "-m", "dynamo.vllm"), args=tuple(args), working_dir="/workspace/examples/backends/vllm"
    )
