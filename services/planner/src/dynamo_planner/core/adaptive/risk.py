"""Why the promised share may be missed, and the remedy: GPUs, room in the cluster, faster starts, other targets."""

from collections.abc import Callable, Mapping
from math import prod

from dynamo_shared.api.gpus import words as gpu_words
from dynamo_shared.api.wording import many

from dynamo_planner.core.adaptive.pools import PoolPlan
from dynamo_planner.core.adaptive.promise import Promise
from dynamo_planner.core.observation import Pool, PoolCounts


def unreachable(plans: Mapping[Pool, PoolPlan]) -> str:
    """Which targets cannot be met with any number of replicas; empty if all can."""
    missed = [pool.value for pool, plan in plans.items() if not plan.sizer.reachable]
    if not missed:
        return ""
    pools = " and ".join(missed)
    return f"no number of {pools} replicas meets the target, these only serve the load: raise the target, or use a faster engine"


def risk(
    promise: Promise,
    plans: Mapping[Pool, PoolPlan],
    final: Mapping[Pool, int],
    workers: Mapping[Pool, PoolCounts],
    *,
    beyond: Callable[[Mapping[Pool, int]], str],
    startup: float,
    constant_replicas: Callable[[], tuple[dict[Pool, int], float] | None],
) -> str:
    """One sentence; empty if the promise is expected to hold. `startup` in seconds.

    `beyond` returns which budgets are too low for replicas, or an empty text.
    `constant_replicas` returns the replicas that would have kept the last hour, and their share; called only if too
    little was kept.
    """
    promised = f"{100 * promise.attainment:g} % are promised"
    if missed := unreachable(plans):
        return f"{promised}, and {missed}"
    expected = prod(plan.sizer.share(final[pool]) for pool, plan in plans.items())
    if expected < promise.attainment:
        expects = f"{100 * expected:.0f} % of requests are expected within the targets, {promised}"
        needed = {pool: plan.replicas for pool, plan in plans.items()}
        if any(final[pool] < count for pool, count in needed.items()) and (too_low := beyond(needed)):
            needs, gpus = _counted(needed, plans)
            return f"{expects}: that needs {needs} ({gpu_words(gpus)}), and {too_low}"
    pending = {pool: counts.pending for pool, counts in workers.items() if pool in plans and counts.pending}
    if pending:
        gpus = sum(plans[pool].gpus * count for pool, count in pending.items())
        waits = ", ".join(f"{count} {pool.value}" for pool, count in pending.items())
        return f"{promised}, and the cluster has no room for {waits} (pending): it needs {many(gpus, 'more GPU')}"
    if promise.kept is not None and promise.kept < promise.attainment:
        return (
            f"{100 * promise.kept:.0f} % of the last hour's requests were within the targets, as estimated, {promised}: replicas "
            f"need {startup:.0f} s to start; {_instead(constant_replicas(), plans, beyond)}"
        )
    return ""


def _instead(
    constant: tuple[dict[Pool, int], float] | None,
    plans: Mapping[Pool, PoolPlan],
    beyond: Callable[[Mapping[Pool, int]], str],
) -> str:
    """What would keep more than following the load: constant replicas, or a faster start."""
    if constant is None:
        return "a higher min_endpoint or a faster start keeps more"
    counts, share = constant
    needs, gpus = _counted(counts, plans)
    too_low = f", and {words}" if (words := beyond(counts)) else ""
    return (
        f"constant {needs} ({gpu_words(gpus)}, as min_endpoint) would have kept {100 * share:.0f} %{too_low}; "
        f"a faster start also keeps more"
    )


def _counted(counts: Mapping[Pool, int], plans: Mapping[Pool, PoolPlan]) -> tuple[str, int]:
    """Replicas by pool in words, and their GPUs."""
    words = ", ".join(f"{pool.value} {count}" for pool, count in counts.items())
    return words, sum(plans[pool].gpus * count for pool, count in counts.items())
