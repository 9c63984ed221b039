"""Names of the ConfigMaps that the profiler creates and the planner reads. Pure."""

_CONFIG = "planner-config-"
_PROFILE = "planner-profile-data-"


def planner_config_name(graph: str) -> str:
    """ConfigMap with the PlannerConfig of a graph."""
    return _CONFIG + graph


def profile_data_name(planner_config: str) -> str:
    """ConfigMap with the profile that belongs to a ConfigMap with a PlannerConfig."""
    return _PROFILE + planner_config.removeprefix(_CONFIG)
