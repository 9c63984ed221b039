"""Model cards (ModelDeploymentCard): reads the layouts of several releases, and selects the published fields. Pure.

- Cards of recent releases (1.6.1) have all fields.
- Cards of about 1.2 lack `worker_type` and `needs`; the `model_type` of a prefill worker contains Prefill.
- Older cards also lack `runtime_config`: the limits of the engine are unknown.
"""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import msgspec
from dynamo_shared.api.untrusted.reading import items, mapping
from dynamo_shared.wire.discovered import ModelCard

#: Limits of the alternatives in `needs`, and of the worker types in an alternative: Dynamo has four worker types.
_MAX_NEEDS, _MAX_TYPES = 16, 4
_COUNT_LIMIT = 2**31
#: Length limit of a name, as of names in Kubernetes. Characters.
MAX_NAME_LENGTH = 253
#: Size limit of a percent-encoded name: a subject has two such names, and NATS accepts subjects of up to 3,840 bytes.
MAX_TOKEN_BYTES = 1024
_ALIASES = {"agg": "aggregated"}
#: Worker type and needs of a prefill worker whose card does not state them.
_PREFILL = ("prefill", ["decode"])

_decode = msgspec.json.Decoder(dict[str, Any]).decode


def card_of(content: Any, suffix: str = "") -> ModelCard | None:
    """The model of a card (`card_json`: an object, or its JSON text); None if it is invalid or has no name.

    `suffix` is the name of the LoRA adapter in the card's key; empty for a base model.
    """
    if isinstance(content, str):
        try:
            content = _decode(content)
        except (msgspec.DecodeError, RecursionError):
            return None
    if not isinstance(content, dict):
        return None
    name = text(content.get("display_name")) or text(content.get("name")) or suffix
    if not name:
        return None
    lora = content.get("lora") if isinstance(content.get("lora"), dict) else None
    worker_type, needs = _role(content)
    engine = mapping(content.get("runtime_config"))
    return ModelCard(
        name=name,
        base_model=_base(content, lora),
        lora=bool(suffix) or lora is not None,
        worker_type=worker_type,
        model_type=text(content.get("model_type")),
        model_input=text(content.get("model_input"), 32),
        needs=needs,
        # Without a limit in the card, the engine's limit applies, then the model's.
        context_length=_first(
            content.get("context_length"),
            engine.get("context_length"),
            content.get("architectural_max_context_length"),
        ),
        kv_cache_block_size=_first(content.get("kv_cache_block_size")),
        total_kv_blocks=_first(engine.get("total_kv_blocks")),
        max_num_seqs=_first(engine.get("max_num_seqs")),
        max_num_batched_tokens=_first(engine.get("max_num_batched_tokens")),
        data_parallel_size=_first(engine.get("data_parallel_size")),
    )


def worker_type(value: Any) -> str:
    """A worker type of a card, in lower case; empty if invalid."""
    name = text(value, 32).strip().lower()
    return _ALIASES.get(name, name) if name.isascii() else ""


def text(value: Any, max_length: int = MAX_NAME_LENGTH) -> str:
    """The value if it is a printable string of at most `max_length` characters that fits into a subject; otherwise empty."""
    return value if isinstance(value, str) and len(value) <= max_length and value.isprintable() and fits(value) else ""


def fits(name: str) -> bool:
    """Whether a name fits into a subject, where percent-encoding takes up to nine bytes for a character."""
    return len(name) <= MAX_TOKEN_BYTES // 9 or len(quote(name, safe="")) <= MAX_TOKEN_BYTES


def _role(content: Mapping[str, Any]) -> tuple[str, list[str]]:
    declared = worker_type(content.get("worker_type"))
    if not declared and "prefill" in text(content.get("model_type")).lower():
        return _PREFILL
    needs = []
    for alternative in items(content.get("needs"))[:_MAX_NEEDS]:
        types = alternative[:_MAX_TYPES] if isinstance(alternative, list) else [alternative]
        needs.append("+".join(sorted({name for name in map(worker_type, types) if name})))
    # An empty alternative is always satisfied, so the worker needs no other workers.
    return declared, sorted(set(needs)) if all(needs) else []


def _base(content: Mapping[str, Any], lora: Mapping[str, Any] | None) -> str:
    locations = (lora or {}, mapping(content.get("user_data")))
    return next((name for location in locations for name in [text(location.get("base_model"))] if name), "")


def _first(*values: Any) -> int:
    """The first valid number; 0 without one."""
    for value in values:
        if isinstance(value, int) and not isinstance(value, bool) and 0 < value < _COUNT_LIMIT:
            return value
    return 0
