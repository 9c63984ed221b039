"""The graph's reconciler: `observe` -> `steps` -> `carry_out` -> `report`."""

from dynamo_pod_builder.reconcilers.graph.reconciler import GraphReconciler

__all__ = ["GraphReconciler"]
