"""Files generated from all services: docs/reference/metrics.md and reasons.md, and parts of helm/."""

from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from dynamo_ctl.services import SERVICES
from dynamo_shared.bus import metrics as bus
from dynamo_shared.runtime.facts import EventReason
from dynamo_shared.runtime.metrics import Metrics
from prometheus_client import CollectorRegistry
from prometheus_client.metrics import MetricWrapperBase

from tools.generate import charts
from tools.generate.reference.markdown import code, page, table

REFERENCE = Path("docs") / "reference"
_HEAD = ("Metric", "Type", "Labels", "What it counts")


def outputs(root: Path) -> dict[Path, str]:
    """Every generated file below the root of a checkout, with its content."""
    return {
        root / REFERENCE / "metrics.md": metrics_page(),
        root / REFERENCE / "reasons.md": reasons_page(),
        **charts.outputs(root),
    }


def metrics_page() -> str:
    """Every metric of every service, from the objects that register it."""
    bus_metrics = [each for each in vars(bus).values() if isinstance(each, MetricWrapperBase)]
    return page(
        "Metrics",
        "the metrics of shared and of each service (metrics.py)",
        "Prometheus metrics at `/metrics` of every process (`server.metrics` of the [configuration](configuration.md)). "
        "If the reference operator has the same metric, name and meaning are the same. "
        "A histogram has `_bucket`, `_sum` and `_count`. Python's own metrics (`python_*`, `process_*`) are also included.",
        "## Every service",
        table(_HEAD, _rows(_collectors(Metrics().registry))),
        "## NATS",
        table(_HEAD, _rows(bus_metrics)),
        *(part for service, module in service_modules("metrics").items() for part in _service(service, module)),
    )


def reasons_page() -> str:
    """Every reason of Kubernetes Events, from the declarations of the services."""
    return page(
        "Reasons of Kubernetes Events",
        "the reasons that each service declares (events.py)",
        "Events (`kubectl describe`, `kubectl events`) of the objects that the platform manages. `reportingController` is "
        "`dynamo-` and the service; the profiler's is `dynamo-planner`, the planner's `dynamo-planner-plans`. "
        'If the reason is "that of" a condition, the Event repeats the reason of that condition. '
        "Identical Events are one series, and an object gets only a few Events of one reason per minute. Programs should use "
        "the [CloudEvents](events.md).",
        *(
            part
            for service, module in service_modules("events").items()
            for part in (f"## {service}", table(("Reason", "Type", "Action", "When"), _reasons(module)))
        ),
    )


def reasons_of(module: ModuleType) -> list[EventReason]:
    """The reasons that a module declares, in its order."""
    return [each for each in vars(module).values() if isinstance(each, EventReason)]


def _reasons(module: ModuleType) -> Iterator[tuple[str, ...]]:
    for each in reasons_of(module):
        yield code(each.name) or f"*that of {each.condition}*", each.type, each.action, each.when


def service_modules(name: str) -> dict[str, ModuleType]:
    """The modules of this name in the services, by service name."""
    packages = {service: target.partition(".")[0] for service, target in SERVICES.items()}
    return {
        service: import_module(f"{package}.{name}")
        for service, package in packages.items()
        if find_spec(f"{package}.{name}") is not None
    }


def _service(service: str, module: ModuleType) -> Iterator[str]:
    yield f"## {service}"
    registry = CollectorRegistry()
    # Kept alive until they are read: nothing else may reference the metrics.
    made = [kind(registry) for name, kind in vars(module).items() if _is_metrics(name, kind, module)]
    yield table(_HEAD, _rows(_collectors(registry)))
    made.clear()


def _is_metrics(name: str, value: Any, module: ModuleType) -> bool:
    return isinstance(value, type) and value.__module__ == module.__name__ and name.endswith("Metrics")


def _collectors(registry: CollectorRegistry) -> list[Any]:
    return list(registry._collector_to_names)


def _rows(collectors: list[Any]) -> Iterator[tuple[str, ...]]:
    for collector in collectors:
        # A custom collector declares its labels in the family that it collects.
        described = collector if isinstance(collector, MetricWrapperBase) else next(iter(collector.collect()))
        (family,) = collector.collect() if not isinstance(collector, MetricWrapperBase) else collector.describe()
        name = f"{family.name}_total" if family.type == "counter" else family.name
        labels = ", ".join(code(label) for label in described._labelnames)
        yield code(name), family.type, labels, f"{family.documentation.rstrip('.')}."
