"""An attack: an entry of the table, the actions of the tenant, and what must hold in addition to `ALWAYS`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from dynamo_shared.api.objects import KubeObject

if TYPE_CHECKING:
    from .world import World

Check: TypeAlias = Callable[["World"], Awaitable[None]]

#: What must hold after every attack; the runner checks it.
ALWAYS = "health within a second, no restart, memory within bounds, another namespace served as before"


@dataclass(frozen=True, slots=True)
class Attack:
    """One attack. `run` acts as the tenant; `check` raises AssertionError if `must` does not hold."""

    name: str
    row: str
    does: str
    run: Check
    check: Check | None = None
    must: str = ALWAYS
    linger: float = 1.0
    """seconds for the attack to take effect before the first check"""
    memory: float = 64.0
    """MiB by which a process may grow; more only if it must keep more objects in memory"""
    slack: float = 1.0
    """seconds by which the other namespace may exceed twice the idle time: the share of the API server itself"""
    together: bool = False
    """whether it may run concurrently with others, each in its own namespace: it uses only its own resources"""


TABLE: dict[str, Attack] = {}


def add(attack: Attack) -> None:
    """Add an attack to the table; its name must be new."""
    assert attack.name not in TABLE, attack.name
    TABLE[attack.name] = attack


def stored(name: str, row: str, does: str, objects: Callable[[str], Iterable[KubeObject]], **more: object) -> None:
    """An attack that only creates objects, in order; the API server may refuse some.

    `objects` is called with the tenant's namespace.
    """

    async def run(world: World) -> None:
        for obj in objects(world.namespace):
            await world.create(obj)

    # Attacks with their own bounds are measured alone.
    together = not {"memory", "slack"} & more.keys()
    add(Attack(name, row, does, run, together=together, **more))  # type: ignore[arg-type]


def attack(name: str, row: str, does: str, **more: object) -> Callable[[Check], Check]:
    """Decorate the function of an attack with its table entry."""

    def register(run: Check) -> Check:
        add(Attack(name, row, does, run, **more))  # type: ignore[arg-type]
        return run

    return register
