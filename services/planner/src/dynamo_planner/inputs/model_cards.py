"""What engines are able to, from the model cards of their workers (DynamoWorkerMetadata). Pure.

Nobody has promised the layout of cards: what is not understood is left out, and is then unknown, never a guess.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from dynamo_planner.core.observing import EngineCapabilities

KubeObject = dict[str, Any]
MOST_CARDS = 64


class Told(NamedTuple):
    """What the cards of a pool's workers say together."""

    able: EngineCapabilities
    models: tuple[str, ...]
    """names under which they serve, without LoRA adapters"""


def engines_of(metadata: Iterable[KubeObject], pods: Container[str], num_gpu: int | None) -> Told:
    """What each engine of a pool is able to at least; `pods` are names of the pool's pods."""
    cards = [card for each in metadata if _pod(each) in pods for card in _cards(each)]
    blocks = [
        size * count
        for card in cards
        if (size := _count(card, "kv_cache_block_size")) and (count := _count(_runtime(card), "total_kv_blocks"))
    ]
    names = {str(card.get("display_name") or card.get("name") or "") for card in cards}
    return Told(
        EngineCapabilities(
            num_gpu=num_gpu,
            max_num_batched_tokens=_least(_count(_runtime(card), "max_num_batched_tokens") for card in cards),
            max_num_seqs=_least(_count(_runtime(card), "max_num_seqs") for card in cards),
            context_length=_least(
                _count(card, "context_length") or _count(_runtime(card), "context_length") for card in cards
            ),
            max_kv_tokens=min(blocks, default=None),
        ),
        tuple(sorted(names - {""})),
    )


def _pod(metadata: KubeObject) -> str:
    owners = metadata["metadata"].get("ownerReferences") or ()
    return next((str(each["name"]) for each in owners if each.get("kind") == "Pod"), metadata["metadata"]["name"])


def _cards(metadata: KubeObject) -> Iterator[Mapping[str, Any]]:
    data = _object((metadata.get("spec") or {}).get("data"))
    for entry in list(_object(data.get("model_cards")).values())[:MOST_CARDS]:
        card = _object(_object(entry).get("card_json"))
        if card and not card.get("lora") and not _object(entry).get("model_suffix"):
            yield card


def _object(value: Any) -> Mapping[str, Any]:
    """An object, also where it is written as text."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return {}
    return value if isinstance(value, dict) else {}


def _runtime(card: Mapping[str, Any]) -> Mapping[str, Any]:
    return _object(card.get("runtime_config"))


def _count(table: Mapping[str, Any], name: str) -> int | None:
    value = table.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _least(values: Iterable[int | None]) -> int | None:
    return min((value for value in values if value is not None), default=None)
