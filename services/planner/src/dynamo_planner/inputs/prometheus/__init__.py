"""Traffic of a graph, from Prometheus (planner.md, section a.3)."""
