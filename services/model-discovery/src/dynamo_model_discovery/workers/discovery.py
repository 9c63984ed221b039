"""The I/O shell: reads sources while this replica is elected, and publishes their workers."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress

import structlog
from dynamo_shared.aio import Offload, either, endless, while_held
from dynamo_shared.bus.errors import BusError
from dynamo_shared.bus.protocol import BusHealth
from dynamo_shared.runtime import HealthState, ServiceContext

from dynamo_model_discovery.metrics import WorkerMetrics
from dynamo_model_discovery.workers.assembly import WorkerObservation, assemble
from dynamo_model_discovery.workers.differences import StateChange, changes
from dynamo_model_discovery.workers.publication import Publication
from dynamo_model_discovery.workers.retention import Unobserved, settle
from dynamo_model_discovery.workers.sources.base import RecordSource
from dynamo_model_discovery.workers.sources.kubernetes import KubernetesSource
from dynamo_model_discovery.workers.wiring import etcd_options

NAME = "worker-discovery"
#: Seconds in which changes are collected: an endpoint and its card are two records of one worker.
SETTLE = 0.1
#: Seconds to wait for the watcher's pods at the start.
PODS_WITHIN = 10.0
#: Under continuous changes, pause between runs as a multiple of a run's duration: 2,000 workers take a tenth of a
#: second.
REST = 4.0
#: Number of worker records from which on a comparison takes more than some milliseconds.
LARGE = 500
#: Interval of checks whether another replica publishes, in addition to a check before each publication; and how long a
#: replica stands by after another has taken over, which may be gone by then. Seconds.
CHECK_EVERY, RESTS = 5.0, 60.0

log = structlog.get_logger("dynamo.model-discovery.workers")


class WorkerDiscoveryService:
    """Publishes which worker serves which model, from Dynamo's own records. One replica is active, the others stand by."""

    def __init__(self, context: ServiceContext) -> None:
        self._context = context
        self._leadership = context.leadership(NAME)

    async def serve(self) -> None:
        """Stand by until elected, publish until the election is lost, and repeat."""
        while True:
            self._context.health.set(NAME, HealthState.OK, "standing by")
            await self._leadership.wait_elected()
            # A standby replica reports no metrics: the sum over all replicas is the active replica's.
            metrics = WorkerMetrics(self._context.metrics.registry)
            active = _Active(self._context, metrics)
            try:
                await while_held(self._leadership, active.run())
            finally:
                metrics.close()
            if active.taken_over.is_set():
                log.warning("another replica also publishes workers; this replica stands by", seconds=RESTS)
                self._context.health.set(NAME, HealthState.OK, "standing by: another replica publishes")
                await either(asyncio.sleep(RESTS), self._leadership.wait_lost())


class _Active:
    def __init__(self, context: ServiceContext, metrics: WorkerMetrics) -> None:
        self._context = context
        self._metrics = metrics
        self._wake = asyncio.Event()
        cluster = context.settings.platform.cluster_name
        self._publication = Publication(context.bus, cluster)
        self._kubernetes = KubernetesSource(context.bus, cluster, self._wake.set)
        self._sources: Sequence[RecordSource] = (self._kubernetes, *self._others())
        # In a thread where there are many: one namespace may have fifty thousand, which take seconds.
        self._large = Offload(above=LARGE, at_once=1)
        self._marked = self._complete = False
        self._left_out: frozenset[str] = frozenset()
        self.taken_over = asyncio.Event()

    async def run(self) -> None:
        """Publish until cancelled, or until another replica has taken over."""
        await either(self._until_taken_over(), self._run())

    async def _until_taken_over(self) -> None:
        while not self.taken_over.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(CHECK_EVERY):
                    await self.taken_over.wait()
            await self._check()

    async def _check(self) -> None:
        """During an upgrade that changes the election, an old and a new replica may both be elected."""
        with suppress(BusError):
            if await self._publication.is_taken_over():
                self.taken_over.set()

    async def _run(self) -> None:
        forget = self._context.bus.on_health(lambda _: self._wake.set())
        try:
            # This must come first: an unread message would look like another publisher's message, and would be removed.
            await self._publication.load()
            await self._publication.take_over()
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(endless(self._publication.state.run()), name="state-publisher")
                tasks.create_task(endless(self._wake_when_lost()), name="state-lost")
                for source in self._sources:
                    tasks.create_task(endless(source.run()), name=f"source-{source.name}")
                await self._until_pods_are_known()
                rested = 0.0
                while True:
                    await self._wake.wait()
                    await asyncio.sleep(max(SETTLE, rested - self._context.clock()))
                    self._wake.clear()
                    started = self._context.clock()
                    steps = await self._steps()
                    rested = self._context.clock() + REST * (self._context.clock() - started)
                    await self._publish(steps)
        finally:
            forget()

    async def _until_pods_are_known(self) -> None:
        """Wait for pods: workers of other sources are pods, too, and would change their location if the pod is known
        late. Without Kubernetes they are not pods.
        """
        deadline = self._context.clock() + PODS_WITHIN
        while not self._kubernetes.ready and self._context.clock() < deadline:
            self._report()
            with suppress(TimeoutError):
                async with asyncio.timeout(SETTLE):
                    await self._wake.wait()
                    self._wake.clear()
        self._wake.set()

    async def _steps(self) -> list[StateChange]:
        """The steps to publish."""
        publication = self._publication
        # A partial read would treat a worker whose card is still missing as another worker.
        read = [source for source in self._sources if source.ready]
        self._complete = len(read) == len(self._sources)
        # Records in Kubernetes name their pod.
        places = self._kubernetes.places if len(self._sources) > 1 else {}
        records = [record for source in read for record in source.records()]
        published = {key: entry.data for key, entry in publication.view.workers.items()}
        unobserved = self._unobserved()

        def compare() -> tuple[WorkerObservation, list[StateChange]]:
            observed = assemble(records, places)
            return observed, changes(publication.view, settle(published, observed, unobserved), publication.stamp)

        # What is published changes by these steps alone.
        observed, steps = await self._large.run(len(records), compare)
        for namespace in sorted(observed.left_out - self._left_out):
            log.warning("a namespace has too many workers; some are not published", namespace=namespace)
        self._left_out = observed.left_out
        self._report()
        return steps

    async def _publish(self, steps: list[StateChange]) -> None:
        publication = self._publication
        if publication.state.lost.is_set():
            await publication.start_over()
            self._marked = False
        if steps:
            # Every pod change of the cluster arrives here, and few pods are workers: check only before a publication.
            await self._check()
        if self.taken_over.is_set():
            return
        await publication.publish(steps)
        self._metrics.counted(
            (entry.data for entry in publication.view.workers.values()),
            (entry.data for entry in publication.view.models.values()),
            {source.name: source.unreadable for source in self._sources},
        )
        if not self._marked and self._complete:
            await publication.mark_complete()
            self._marked = True

    def _unobserved(self) -> Unobserved:
        return Unobserved(
            sources=frozenset(source.name for source in self._sources if not source.ready),
            pods=frozenset(pod for source in self._sources for pod in source.unreadable_pods()),
        )

    def _report(self) -> None:
        troubles = [f"{source.name}: {source.trouble}" for source in self._sources if source.trouble]
        waiting = [source.name for source in self._sources if not source.ready and not source.trouble]
        if waiting:
            troubles.append(f"not read yet: {', '.join(waiting)}")
        if self._context.bus.health is not BusHealth.CONNECTED:
            troubles.append(f"NATS: {self._context.bus.trouble}")
        state = HealthState.DEGRADED if troubles else HealthState.OK
        self._context.health.set(NAME, state, "; ".join(troubles) or "active")

    def _others(self) -> list[RecordSource]:
        sources: list[RecordSource] = []
        options = etcd_options(self._context.settings)
        if options is not None:
            from dynamo_model_discovery.workers.sources.etcd import EtcdSource  # noqa: PLC0415 - see `wiring`

            sources.append(EtcdSource(options, self._wake.set))
        directory = self._context.settings.platform.model_discovery.workers.file_directory
        if directory is not None:
            from dynamo_model_discovery.workers.sources.files import FileSource  # noqa: PLC0415 - for development only

            sources.append(FileSource(directory, self._wake.set))
        return sources

    async def _wake_when_lost(self) -> None:
        while True:
            await self._publication.state.lost.wait()
            self._wake.set()
            # `start_over` clears the flag; until then there is no reason to wake.
            await asyncio.sleep(1.0)
