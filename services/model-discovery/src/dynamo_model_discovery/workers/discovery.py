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

NAME = "worker-discovery"
#: Debounce of changes: an endpoint and its card are two records of one worker. Seconds.
DEBOUNCE = 0.1
#: Time limit for the watcher's pods at the start. Seconds.
PODS_WITHIN = 10.0
#: Pause between runs under continuous changes, as a multiple of the duration of a run; 2,000 workers take 0.1 s.
PAUSE_FACTOR = 4.0
#: Number of records above which a comparison runs in a thread, because it takes more than a few milliseconds.
LARGE = 500
#: Interval of checks whether another replica publishes, in addition to a check before each publication. Seconds.
CHECK_INTERVAL = 5.0
#: How long a replica stands by after another one has taken over; that one may have ended then. Seconds.
STANDBY_AFTER_TAKEOVER = 60.0

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
            # Only the active replica has metrics, so that a sum over all replicas is correct.
            with WorkerMetrics(self._context.metrics.registry) as metrics:
                active = _Active(self._context, metrics)
                await while_held(self._leadership, active.run())
            if active.taken_over.is_set():
                log.warning(
                    "another replica also publishes workers; this replica stands by", seconds=STANDBY_AFTER_TAKEOVER
                )
                self._context.health.set(NAME, HealthState.OK, "standing by: another replica publishes")
                await either(asyncio.sleep(STANDBY_AFTER_TAKEOVER), self._leadership.wait_lost())


class _Active:
    def __init__(self, context: ServiceContext, metrics: WorkerMetrics) -> None:
        self._context = context
        self._metrics = metrics
        self._wake = asyncio.Event()
        cluster = context.settings.platform.cluster_name
        self._publication = Publication(context.bus, cluster)
        self._kubernetes = KubernetesSource(context.bus, cluster, self._wake.set)
        self._sources: Sequence[RecordSource] = (self._kubernetes, *self._others())
        # A namespace may have 50,000 records, which take seconds.
        self._offload = Offload(above=LARGE, at_once=1)
        self._marked = self._complete = False
        self._truncated: frozenset[str] = frozenset()
        self.taken_over = asyncio.Event()

    async def run(self) -> None:
        """Publish until cancelled, or until another replica has taken over."""
        await either(self._until_taken_over(), self._run())

    async def _until_taken_over(self) -> None:
        while not self.taken_over.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(CHECK_INTERVAL):
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
            # First, because messages that were not loaded would be removed as messages of another publisher.
            await self._publication.load()
            await self._publication.take_over()
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(endless(self._publication.state.run()), name="state-publisher")
                tasks.create_task(endless(self._wake_when_lost()), name="state-lost")
                for source in self._sources:
                    tasks.create_task(endless(source.run()), name=f"source-{source.name}")
                await self._until_pods_are_known()
                pause_until = 0.0
                while True:
                    await self._wake.wait()
                    await asyncio.sleep(max(DEBOUNCE, pause_until - self._context.clock()))
                    self._wake.clear()
                    started = self._context.clock()
                    steps = await self._steps()
                    ended = self._context.clock()
                    pause_until = ended + PAUSE_FACTOR * (ended - started)
                    await self._publish(steps)
        finally:
            forget()

    async def _until_pods_are_known(self) -> None:
        """Wait for the pods, for at most PODS_WITHIN: workers of other sources get their location from their pod, and
        would change it when the pod becomes known. Without Kubernetes no worker has a pod.
        """
        deadline = self._context.clock() + PODS_WITHIN
        while not self._kubernetes.ready and self._context.clock() < deadline:
            self._report()
            with suppress(TimeoutError):
                async with asyncio.timeout(DEBOUNCE):
                    await self._wake.wait()
                    self._wake.clear()
        self._wake.set()

    async def _steps(self) -> list[StateChange]:
        """The changes to publish."""
        publication = self._publication
        # A source that is partly read may lack the card of a worker.
        read = [source for source in self._sources if source.ready]
        self._complete = len(read) == len(self._sources)
        # Only records of other sources need the pods by address: records in Kubernetes name their pod.
        locations = self._kubernetes.locations if len(self._sources) > 1 else {}
        records = [record for source in read for record in source.records()]
        published = {key: entry.data for key, entry in publication.view.workers.items()}
        unobserved = self._unobserved()

        def compare() -> tuple[WorkerObservation, list[StateChange]]:
            observed = assemble(records, locations)
            return observed, changes(publication.view, settle(published, observed, unobserved), publication.stamp)

        # During the comparison in a thread, no other code changes the view.
        observed, steps = await self._offload.run(len(records), compare)
        for namespace in sorted(observed.truncated - self._truncated):
            log.warning("a namespace has too many workers; some are not published", namespace=namespace)
        self._truncated = observed.truncated
        self._report()
        return steps

    async def _publish(self, steps: list[StateChange]) -> None:
        publication = self._publication
        if publication.state.lost.is_set():
            await publication.start_over()
            self._marked = False
        if steps:
            # Only before a publication: most changes of pods change no worker.
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
        problems = [f"{source.name}: {source.error}" for source in self._sources if source.error]
        waiting = [source.name for source in self._sources if not source.ready and not source.error]
        if waiting:
            problems.append(f"not read yet: {', '.join(waiting)}")
        if self._context.bus.health is not BusHealth.CONNECTED:
            problems.append(f"NATS: {self._context.bus.trouble}")
        state = HealthState.DEGRADED if problems else HealthState.OK
        self._context.health.set(NAME, state, "; ".join(problems) or "active")

    def _others(self) -> list[RecordSource]:
        sources: list[RecordSource] = []
        workers = self._context.settings.platform.model_discovery.workers
        # The addresses that workers get as ETCD_ENDPOINTS.
        addresses = (each.strip() for each in self._context.settings.infrastructure.etcd_address.split(","))
        if endpoints := workers.etcd_endpoints or tuple(filter(None, addresses)):
            # gRPC takes 27 MiB, which installations with workers in Kubernetes do not need.
            from dynamo_shared.runtime.leasing.etcd import etcd_options  # noqa: PLC0415

            from dynamo_model_discovery.workers.sources.etcd import EtcdSource  # noqa: PLC0415

            user, password = workers.etcd_user, workers.etcd_password_file
            sources.append(EtcdSource(etcd_options(endpoints, workers.etcd_tls, user, password), self._wake.set))
        directory = workers.file_directory
        if directory is not None:
            from dynamo_model_discovery.workers.sources.files import FileSource  # noqa: PLC0415 - for development only

            sources.append(FileSource(directory, self._wake.set))
        return sources

    async def _wake_when_lost(self) -> None:
        while True:
            await self._publication.state.lost.wait()
            self._wake.set()
            # Until `start_over` clears the flag, wake at most once per second.
            await asyncio.sleep(1.0)
