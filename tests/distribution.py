"""Decides which process runs which test file, and when: long ones first, always some that wait and some that compute.

All tests of a file run in one process, one after another. Files are in one row: those that share the session's control
plane, those that start servers of their own, those that need no server. Half of the processes take files from the start
of the row, the other half from its end. So tests without servers, which compute, run next to tests that mostly wait;
the second half starts a control plane only if the first half is late, because a control plane costs as much as a long
file.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from xdist.scheduler import LoadFileScheduling

if TYPE_CHECKING:
    import pytest
    from xdist.workermanage import WorkerController

INTEGRATION = "tests/integration"
#: Folders whose tests need no server.
WITHOUT_SERVERS = ("tests/page", "tests/unit")

#: Files of the integration tests that do not use the session's control plane.
OWN_SERVERS = frozenset({
    "test_admission.py",
    "test_admission_callers.py",
    "test_admission_certificates.py",
    "test_archives.py",
    "test_autoscaling.py",
    "test_benchmarks.py",
    "test_both_families.py",
    "test_containers.py",
    "test_conversion.py",
    "test_dynadmin_impersonation.py",
    "test_dynamo_runtime.py",
    "test_leases.py",
    "test_lora_api.py",
    "test_past_comes_back.py",
    "test_planner_inputs.py",
    "test_prefix_following.py",
    "test_rapid_simulation.py",
    "test_requests_v1alpha1.py",
    "test_restarts.py",
    "test_seed_examples.py",
    "test_several_nats.py",
    "test_snapshots.py",
    "test_storing.py",
    "test_webhooks.py",
})  # fmt: skip

#: Files, or groups of them, that take more than half a minute, the longest first, so that none of them starts last.
LONG = (
    "tests/integration/test_ctl.py",
    "tests/integration/test_dynadmin_examples.py",
    "tests/integration/test_benchmarks.py",
    "tests/integration/test_restarts.py",
    "tests/integration/test_planning.py",
    "tests/conformance/test_must_run.py",
    "tests/integration/test_planner_inputs.py",
    "tests/integration/test_leases.py",
    "tests/integration/test_rapid_simulation.py",
    "tests/charts/test_objects.py",
)

#: Files that share something no other file uses, a control plane or renderings of the chart: one process creates it
#: once.
GROUPS = (
    tuple(f"tests/charts/test_{name}.py" for name in ("objects", "rendering", "roles", "scraping")),
    ("tests/admission/test_cases.py", "tests/admission/test_mutations.py"),
    tuple(
        f"{INTEGRATION}/{name}"
        for name in (
            "test_admission.py",
            "test_admission_certificates.py",
            "test_conversion.py",
            "test_requests_v1alpha1.py",
        )
    ),
)
_GROUP_OF = {file: group[0] for group in GROUPS for file in group}


def group_of(nodeid: str) -> str:
    """The file of a test, or the first file of its group."""
    file = nodeid.split("::", 1)[0]
    return _GROUP_OF.get(file, file)


def place(group: str) -> tuple[int, int, str]:
    """The position of a group in the row, by its first file."""
    rank = len(LONG) - LONG.index(group) if group in LONG else 0
    if group.startswith(WITHOUT_SERVERS):
        return (2, rank, group)
    if group.startswith(INTEGRATION) and Path(group).name not in OWN_SERVERS:
        return (0, -rank, group)
    # Long ones are next to the end, where the second half of the processes starts.
    return (1, rank, group)


class FromBothEnds(LoadFileScheduling):  # type: ignore[misc]  # the library is untyped
    """The second half of the processes takes files from the end of the row, all others from its start."""

    def __init__(self, config: pytest.Config, log: Any = None) -> None:
        super().__init__(config, log)
        self._is_in_order = False

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)

    def _assign_work_unit(self, node: WorkerController) -> None:
        if not self._is_in_order:
            for group in sorted(self.workqueue, key=place):
                self.workqueue.move_to_end(group)
            self._is_in_order = True
        if self.nodes.index(node) >= len(self.nodes) - len(self.nodes) // 2:
            self.workqueue.move_to_end(next(reversed(self.workqueue)), last=False)
        super()._assign_work_unit(node)
