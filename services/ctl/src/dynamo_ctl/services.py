"""The services that dynamoctl can run, by name."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from dynamo_ctl.errors import CtlError, ExitCode

if TYPE_CHECKING:
    from dynamo_shared.runtime import Service

ALL = "all"

ADMISSION = "admission"
DYNADMIN = "dynadmin"

#: In the order of the data flow: admission before anything is stored, then the publisher, then its readers.
SERVICES = {
    ADMISSION: "dynamo_admission.app:AdmissionService",
    "watcher": "dynamo_watcher.app:WatcherService",
    "pod-builder": "dynamo_pod_builder.app:PodBuilderService",
    "scaler": "dynamo_scaler.app:ScalerService",
    "model-discovery": "dynamo_model_discovery.app:ModelDiscoveryService",
    "profiler": "dynamo_profiler.app:ProfilerService",
    "planner": "dynamo_planner.app:PlannerService",
    "image-builder": "dynamo_image_builder.app:ImageBuilderService",
    DYNADMIN: "dynamo_dynadmin.app:DynadminService",
}


def make(names: Iterable[str] = (ALL,), without: Collection[str] = ()) -> list[Service]:
    """The services with these names, each once. `all` stands for every installed service.

    Raises CtlError for an unknown service, and for a service that is not installed.
    """
    requested = list(names)
    unknown = [name for name in requested if name not in SERVICES and name != ALL]
    if unknown:
        known = ", ".join([ALL, *SERVICES])
        raise CtlError(f"unknown services: {', '.join(unknown)}; use some of {known}", ExitCode.USAGE)
    absent = [name for name in SERVICES if not is_installed(name)]
    if missing := [name for name in requested if name in absent]:
        packages = ", ".join(f"dynamo-{name}" for name in missing)
        raise CtlError(f"not installed: {packages}; the image built with PARTS=planner has it", ExitCode.USAGE)
    chosen = [
        name
        for name in SERVICES
        if (ALL in requested or name in requested) and name not in without and name not in absent
    ]
    return [_dynadmin() if name == DYNADMIN else _load(SERVICES[name]) for name in chosen]


def is_installed(name: str) -> bool:
    """Whether a service's package is installed: some installations lack the heavy libraries of profiler and planner."""
    return find_spec(SERVICES[name].partition(".")[0]) is not None


def _load(target: str) -> Service:
    module, _, attribute = target.partition(":")
    service: Service = getattr(import_module(module), attribute)()
    return service


def _dynadmin() -> Service:
    """Make dynadmin with functions that it may not import: the pod-builder's rendering and, if installed, simulations."""
    from dynamo_dynadmin.app import DynadminService  # as heavy as the other services

    from dynamo_ctl.planned import planned

    if not (is_installed("profiler") and is_installed("planner")):
        return DynadminService(planned)
    from dynamo_ctl.simulations.estimation import Estimation

    return DynadminService(planned, Estimation)
