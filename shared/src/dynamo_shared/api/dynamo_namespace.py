"""Dynamo namespaces, within which workers and frontends discover each other."""

GLOBAL = "dynamo"


def dynamo_namespace(namespace: str, graph: str, *, shared: bool = False) -> str:
    """The Dynamo namespace of a graph; `shared` if it uses the common namespace of all such graphs."""
    return GLOBAL if shared else f"{namespace}-{graph.replace('.', '-')}"


def worker_namespace(base: str, worker_hash: str) -> str:
    """The Dynamo namespace of one generation of workers (planner.md, section a.9)."""
    return f"{base}-{worker_hash}" if worker_hash else base
