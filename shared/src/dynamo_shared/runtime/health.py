"""What works and what does not, as reported by the parts themselves, for /healthz and /readyz."""

import asyncio
import enum
from dataclasses import dataclass, field


class HealthState(enum.Enum):
    """`DEGRADED` still does its work, on what it knows; `FAILED` does not."""

    OK = "ok"
    DEGRADED = "degraded"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Report:
    """One part's word."""

    state: HealthState
    message: str = ""


@dataclass(slots=True)
class Health:
    """Parts by name. A part that has been announced and not yet reported is not ready."""

    _parts: dict[str, Report] = field(default_factory=dict)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    def expect(self, part: str) -> None:
        """Not ready before this part has reported."""
        self._parts.setdefault(part, Report(HealthState.FAILED, "starting"))

    def set(self, part: str, state: HealthState, message: str = "") -> None:
        """A part reports its health."""
        self._parts[part] = Report(state, message)
        self._changed.set()

    def forget(self, part: str) -> None:
        """A part is not there any more, or has nothing to report."""
        self._parts.pop(part, None)
        self._changed.set()

    def ok(self, part: str) -> None:
        """A part is well."""
        self.set(part, HealthState.OK)

    @property
    def ready(self) -> bool:
        """Whether every part at least does its work."""
        return all(report.state is not HealthState.FAILED for report in self._parts.values())

    def ready_part(self, part: str) -> bool | None:
        """Whether one part, with what is reported below its name (`part/...`), does its work; None where it is unknown.

        A process of several services is ready when all are; a probe that needs one of them alone asks for that.
        """
        reports = [report for name, report in self._parts.items() if name == part or name.startswith(f"{part}/")]
        return all(report.state is not HealthState.FAILED for report in reports) if reports else None

    async def wait_ready(self) -> None:
        """Return as soon as every part does its work."""
        while not self.ready:
            self._changed.clear()
            await self._changed.wait()

    @property
    def not_ready(self) -> str:
        """The parts that do not do their work, each with its message, for people; "" where all do."""
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
