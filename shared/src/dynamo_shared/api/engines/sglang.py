"""The command that starts SGLang."""

from dynamo_shared.api.engines.command import Command, EngineSpec, Role, rounded_up

#: Port at which prefill workers negotiate transfers with decode workers.
_BOOTSTRAP_PORT = "12345"
_ALL_ADDRESSES = "0.0.0.0"  # noqa: S104  # of the pod: decode workers are others
_PAGE, _LATENT_PAGE = 16, 64


def command(spec: EngineSpec) -> Command:
    """The command of a worker. SGLang's `--tp` is the GPUs of a pipeline stage, which include data parallel attention ranks."""
    engine, role = spec.engine, spec.role
    args = ["--model-path", spec.path, "--served-model-name", spec.model]
    args += ["--page-size", str(_LATENT_PAGE if spec.latent else _PAGE)]
    args += ["--tp", str(engine.tp * engine.dp)]
    if engine.pp > 1:
        args += ["--pp-size", str(engine.pp)]
    if engine.dp > 1:
        args += ["--dp", str(engine.dp), "--enable-dp-attention"]
    if engine.moe_ep > 1:
        args += ["--ep-size", str(engine.moe_ep)]
    if engine.eight_bit_cache:
        args += ["--kv-cache-dtype", "fp8_e4m3"]
    if engine.batch_size:
        if role is not Role.PREFILL:
            # The limit of all data parallel ranks together.
            args += ["--max-running-requests", str(engine.batch_size * engine.dp)]
        if role is not Role.DECODE:
            prompts = engine.batch_size if role is Role.PREFILL else 1
            args += ["--max-prefill-tokens", str(rounded_up(spec.isl * prompts))]
    args.append("--skip-tokenizer-init")
    if role.disaggregated:
        args += ["--disaggregation-mode", role.value, "--disaggregation-transfer-backend", "nixl"]
        args += ["--disaggregation-bootstrap-port", _BOOTSTRAP_PORT, "--host", _ALL_ADDRESSES]
    return Command(
        command=("python3", "-m", "dynamo.sglang"), args=tuple(args), working_dir="/workspace/examples/backends/sglang"
    )
