"""Dynamo's mocker, which simulates engines without GPUs: the flags of the simulated engine that the mocker supports."""

from dynamo_shared.api.engines.command import Command, EngineSpec, Role

BLOCK = 64
"""Tokens of a KV block."""
_BOOTSTRAP_PORT = "12345"


def command(spec: EngineSpec, *, profile_folder: str | None, kv_tokens: int | None) -> Command:
    """The command of a mocker. `profile_folder` has measured curves of the engine; None means the mocker's default
    times. `kv_tokens` is the size of the KV cache of a replica in tokens.
    """
    engine, role = spec.engine, spec.role
    args = ["--model-path", spec.path, "--model-name", spec.model, "--speedup-ratio", "1.0", "--block-size", str(BLOCK)]
    if kv_tokens:
        args += ["--num-gpu-blocks-override", str(max(1, kv_tokens // engine.dp // BLOCK))]
    if engine.dp > 1:
        args += ["--data-parallel-size", str(engine.dp)]
    if engine.batch_size and role is not Role.PREFILL:
        args += ["--max-num-seqs", str(engine.batch_size)]
    if profile_folder:
        args += ["--planner-profile-data", profile_folder]
    if role.disaggregated:
        args += ["--disaggregation-mode", role.value]
    if role is Role.PREFILL:
        args += ["--bootstrap-ports", _BOOTSTRAP_PORT]
    return Command(command=("python3", "-m", "dynamo.mocker"), args=tuple(args))
