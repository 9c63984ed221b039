"""The models that workers serve together, and whether they can answer requests. Pure.

The rules are the same as in Dynamo's frontend: within one Dynamo namespace, the present worker types must satisfy the
`needs` of each worker of a model. Workers of releases without worker types cannot be distinguished, so one of them is
enough.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from dynamo_shared.api.resources import ObjectKey
from dynamo_shared.wire.discovered import ModelCard, ServedModelData, WorkerData

#: Limit of the published worker types of a model. Dynamo has four, but cards may contain any text.
MAX_TYPES = 32


class _Group(NamedTuple):
    """Workers that serve a model together."""

    namespace: str
    dynamo_namespace: str
    model: str


class _Member(NamedTuple):
    worker: WorkerData
    card: ModelCard

    @property
    def type(self) -> str:
        return self.card.worker_type or self.worker.role


def served(workers: Iterable[WorkerData]) -> dict[ObjectKey, ServedModelData]:
    """All models that at least one worker has, available or not."""
    groups: dict[_Group, list[_Member]] = defaultdict(list)
    for worker in workers:
        for card in worker.models:
            groups[_Group(worker.namespace, worker.dynamo_namespace, card.name)].append(_Member(worker, card))
    models = (
        _model(group, sorted(members, key=lambda member: member.worker.name), groups)
        for group, members in groups.items()
    )
    return {ObjectKey(model.namespace, model.name): model for model in models}


def _model(group: _Group, members: list[_Member], groups: Mapping[_Group, list[_Member]]) -> ServedModelData:
    cards = [member.card for member in members]
    base = next((card.base_model for card in cards if card.base_model), "")
    # An adapter's partners are the partners of its base model: a prefill worker need not have the adapter.
    partners = groups.get(group._replace(model=base), []) if base else []
    legacy = any(not card.worker_type for card in cards)
    missing = set() if legacy else _missing(cards, {member.type for member in [*members, *partners]})
    return ServedModelData(
        name=f"{group.dynamo_namespace}/{group.model}",
        namespace=group.namespace,
        model=group.model,
        base_model=base,
        lora=any(card.lora for card in cards),
        dynamo_namespace=group.dynamo_namespace,
        graph_deployment=next(
            (member.worker.graph_deployment for member in members if member.worker.graph_deployment), ""
        ),
        available=not missing,
        missing=sorted(missing)[:MAX_TYPES],
        workers=dict(sorted(Counter(member.type for member in members).most_common(MAX_TYPES))),
        # A prefill worker takes no client requests; its type is empty for this reason.
        model_type=next((card.model_type for card in cards if card.model_type and card.worker_type != "prefill"), ""),
        context_length=min((card.context_length for card in cards if card.context_length), default=0),
    )


def _missing(cards: Iterable[ModelCard], present: set[str]) -> set[str]:
    missing: set[str] = set()
    # A set, because workers of a model usually have the same needs.
    for needs in {tuple(card.needs) for card in cards}:
        alternatives = [set(need.split("+")) for need in needs]
        if alternatives and not any(types <= present for types in alternatives):
            missing |= set().union(*alternatives) - present
    return missing
