"""Whether a graph asks the planner service to plan it. Apart from the rest of planning, which takes numerical libraries."""

from __future__ import annotations

from typing import Any

from dynamo_shared.api.registry.annotations import PLANNER_CONFIG


def config_map_of(graph: dict[str, Any]) -> str:
    """Name of the ConfigMap that a graph's annotation names; empty where it asks for no planning."""
    name = (graph["metadata"].get("annotations") or {}).get(PLANNER_CONFIG, "")
    return str(name).strip()
