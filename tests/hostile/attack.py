"""What an attack is: an entry of the table, what it does, and what must hold next to that the platform lives on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from dynamo_shared.api.objects import KubeObject

if TYPE_CHECKING:
    from .world import World

Check: TypeAlias = Callable[["World"], Awaitable[None]]

#: What every attack must leave as it is; the runner holds each of them against it.
ALWAYS = "health within a second, no restart, memory within bounds, another namespace served as before"


@dataclass(frozen=True, slots=True)
class Attack:
    """One attack. `run` does it as the tenant; `check` raises AssertionError where what `must` hold does not."""

    name: str
    row: str
    does: str
    run: Check
    check: Check | None = None
    must: str = ALWAYS
    linger: float = 1.0
    """seconds before the first check, in which the attack takes effect"""
    memory: float = 64.0
    """MiB by which a process may grow meanwhile; more only where objects that it must hold take more"""
    slack: float = 1.0
    """seconds by which the other namespace may be slower than twice the idle time: what the API server itself takes"""
    together: bool = False
    """whether others like it may run at the same time, each in a namespace of its own: it uses nothing but its own"""


TABLE: dict[str, Attack] = {}


def add(attack: Attack) -> None:
    """Enter an attack into the table; its name must be new."""
    assert attack.name not in TABLE, attack.name
    TABLE[attack.name] = attack


def stored(name: str, row: str, does: str, objects: Callable[[str], Iterable[KubeObject]], **more: object) -> None:
    """An attack by objects alone: all are created, in order; what the API server refuses is refused.

    `objects` is called with the tenant's namespace.
    """

    async def run(world: World) -> None:
        for obj in objects(world.namespace):
            await world.create(obj)

    # Those with a bound of their own are measured alone.
    together = not {"memory", "slack"} & more.keys()
    add(Attack(name, row, does, run, together=together, **more))  # type: ignore[arg-type]


def attack(name: str, row: str, does: str, **more: object) -> Callable[[Check], Check]:
    """Decorate what an attack does with its entry of the table."""

    def register(run: Check) -> Check:
        add(Attack(name, row, does, run, **more))  # type: ignore[arg-type]
        return run

    return register
