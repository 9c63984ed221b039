"""What each component of a process says about itself, and what follows for readiness."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from dynamo_shared.runtime.clock import Clock, SystemClock


class HealthState(StrEnum):
    """How a component is. What is degraded still serves with what it has; the others make the process not ready."""

    STARTING = "starting"
    OK = "ok"
    DEGRADED = "degraded"
    FAILED = "failed"
    STOPPING = "stopping"


STARTING = HealthState.STARTING
OK = HealthState.OK
DEGRADED = HealthState.DEGRADED
FAILED = HealthState.FAILED
STOPPING = HealthState.STOPPING

_READY = frozenset({OK, DEGRADED})


@dataclass(frozen=True, slots=True)
class ComponentHealth:
    """State of one component, why, and since when."""

    state: HealthState
    message: str
    since: datetime


Listener = Callable[[str, ComponentHealth], None]


class Health:
    """States of the components of one process, by name."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._components: dict[str, ComponentHealth] = {}
        self._listeners: list[Listener] = []

    def set(self, component: str, state: HealthState | str, message: str = "") -> None:
        """Notes a component's state. Listeners hear of changes of the state, not of the message alone."""
        state = HealthState(state)
        old = self._components.get(component)
        if old is not None and old.state is state:
            if old.message != message:
                self._components[component] = ComponentHealth(state, message, old.since)
            return
        new = ComponentHealth(state, message, self._clock.now())
        self._components[component] = new
        for listener in self._listeners:
            listener(component, new)

    def forget(self, component: str) -> None:
        """The component is gone on purpose and counts no more."""
        self._components.pop(component, None)

    def get(self, component: str) -> ComponentHealth | None:
        """State of one component, None while it has said nothing."""
        return self._components.get(component)

    def components(self) -> dict[str, ComponentHealth]:
        """All states, by component."""
        return dict(self._components)

    def on_change(self, listener: Listener) -> None:
        """Calls back at each change of a component's state."""
        self._listeners.append(listener)

    @property
    def ready(self) -> bool:
        """Whether at least one component is known and all of them serve, be it degraded."""
        return bool(self._components) and all(c.state in _READY for c in self._components.values())

    @property
    def state(self) -> HealthState:
        """The worst state of any component."""
        order = (FAILED, STOPPING, STARTING, DEGRADED)
        states = {component.state for component in self._components.values()}
        return next((state for state in order if state in states), OK if states else STARTING)

    def report(self) -> dict[str, Any]:
        """What /readyz answers."""
        return {
            "ready": self.ready,
            "state": self.state.value,
            "components": {
                name: {"state": c.state.value, "message": c.message, "since": c.since.isoformat(timespec="milliseconds")}
                for name, c in sorted(self._components.items())
            },
        }
