"""Health of the parts of a process, as they report it, for /healthz and /readyz."""

import asyncio
import enum
from dataclasses import dataclass, field


class HealthState(enum.Enum):
    """`DEGRADED`: it still works, with the data that it has; `FAILED`: it does not work."""

    OK = "ok"
    DEGRADED = "degraded"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Report:
    """One part's report."""

    state: HealthState
    message: str = ""


@dataclass(slots=True)
class Health:
    """Parts by name. An expected part that has not reported yet is not ready."""

    _parts: dict[str, Report] = field(default_factory=dict)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    def expect(self, part: str) -> None:
        """Not ready until this part has reported."""
        self._parts.setdefault(part, Report(HealthState.FAILED, "starting"))

    def set(self, part: str, state: HealthState, message: str = "") -> None:
        """Set a part's health."""
        self._parts[part] = Report(state, message)
        self._changed.set()

    def forget(self, part: str) -> None:
        """Remove a part that has ended or has nothing to report."""
        self._parts.pop(part, None)
        self._changed.set()

    def ok(self, part: str) -> None:
        """A part works."""
        self.set(part, HealthState.OK)

    @property
    def ready(self) -> bool:
        """Whether no part has failed."""
        return all(report.state is not HealthState.FAILED for report in self._parts.values())

    def ready_part(self, part: str) -> bool | None:
        """Whether one part, with all parts below its name (`part/...`), works; None if it is unknown.

        A process of several services is ready when all are; a probe that needs only one of them uses this.
        """
        reports = [report for name, report in self._parts.items() if name == part or name.startswith(f"{part}/")]
        return all(report.state is not HealthState.FAILED for report in reports) if reports else None

    async def wait_ready(self) -> None:
        """Return as soon as no part is failed."""
        while not self.ready:
            self._changed.clear()
            await self._changed.wait()

    @property
    def not_ready(self) -> str:
        """The failed parts, each with its message, for people; "" if there are none."""
        return "; ".join(
            f"{name}: {report.message or report.state.value}"
            for name, report in sorted(self._parts.items())
            if report.state is HealthState.FAILED
        )

    def report(self) -> dict[str, object]:
        """For people and probes: `{"ready": bool, "parts": {name: {"state", "message"}}}`."""
        return {
            "ready": self.ready,
            "parts": {
                name: {"state": report.state.value, "message": report.message}
                for name, report in sorted(self._parts.items())
            },
        }
