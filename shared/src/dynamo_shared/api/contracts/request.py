"""`profilingConfig` of a v1alpha1 request, with the profiler's configuration in it typed."""

from __future__ import annotations

from dynamo_shared.api.contracts.profiler import ProfilerConfig
from dynamo_shared.api.v1alpha1.request import ProfilingConfigSpec as _ProfilingConfig


class ProfilingConfig(_ProfilingConfig):
    """How to profile. The API server takes any object as config; here it is the profiler's configuration."""

    config: ProfilerConfig | None = None  # type: ignore[assignment]
    """Configuration of the profiler."""
