"""Composes all parts of scale commands for `app.py`."""

import time
from collections.abc import Callable

from dynamo_shared.aio import either, endless
from dynamo_shared.api.resources import ObjectKey
from dynamo_shared.bus import EventPublisher
from dynamo_shared.bus.commands import Answered, CommandConsumer, CommandRefusedError
from dynamo_shared.kube import KubeClient
from dynamo_shared.leases import Ownership
from dynamo_shared.runtime import ServiceContext
from dynamo_shared.runtime.facts import Announcer
from dynamo_shared.state import ObjectCache
from dynamo_shared.wire.cloudevents import Event
from dynamo_shared.wire.specifications.scaling import ScaleData

from dynamo_scaler.commands.admission import CommandAdmission
from dynamo_scaler.commands.answers import Answers
from dynamo_scaler.commands.cluster_view import ClusterView
from dynamo_scaler.commands.held_scalings import HeldScalings
from dynamo_scaler.commands.request import ScaleRequest, namespace_of
from dynamo_scaler.commands.scaling import Scaling
from dynamo_scaler.commands.turn import Turn
from dynamo_scaler.commands.writer import Writer
from dynamo_scaler.metrics import DecisionMetrics

SERVICE, VERB = "scaler", "scale"
#: The owner of this key decides all scale commands of the cluster.
KEY = ObjectKey("", "scale-commands")


class ScaleCommands:
    """Takes scale commands while this replica owns them. Its parts share the service's cache, which others fill."""

    def __init__(
        self,
        context: ServiceContext,
        kube: KubeClient,
        cache: ObjectCache,
        announcer: Announcer,
        publisher: EventPublisher,
        *,
        metrics: DecisionMetrics,
        is_elsewhere: Callable[[str], bool],
        ownership: Ownership,
    ) -> None:
        platform = context.settings.platform
        self._metrics = metrics
        self._view = ClusterView(cache, platform.scaler, is_elsewhere)
        writer = Writer(kube, cache)
        self._scaling = Scaling(
            self._view,
            writer,
            announcer,
            metrics,
            CommandAdmission(self._view, writer, time.time),
            time.time,
            on_held=self.changed,
        )
        self._held = HeldScalings(self._scaling)
        self._cluster = platform.cluster_name
        self._answers = Answers(context.bus, platform.cluster_name)
        self._consumer = CommandConsumer(context.bus, platform.cluster_name, SERVICE, {VERB: self.handle}, publisher)
        self._turn = Turn(ownership, KEY, self._serve)

    def changed(self) -> None:
        """Something changed that intents may wait for."""
        self._held.wake()

    async def run(self) -> None:
        """Take commands while it is this replica's turn, until cancelled. Start it when the cache is filled."""
        await self._turn.run()

    async def handle(self, command: Event, data: ScaleData) -> Answered:
        """Handle one command. A repeated command gets its first answer again."""
        namespace = namespace_of(command, self._cluster)
        known = await self._answers.find(namespace, command.id)
        if known is None:
            try:
                known = await self._scaling.carry_out(ScaleRequest.of(command, namespace, data))
            except CommandRefusedError as error:
                known = error
            self._answers.keep(namespace, command.id, known)
        if isinstance(known, CommandRefusedError):
            raise known
        return known

    async def _serve(self) -> None:
        try:
            await endless(either(self._consumer.run(), self._held.run()))
        finally:
            self._metrics.no_budgets()
