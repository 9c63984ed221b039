"""Deliveries of a durable consumer, and the answers to them."""

from nats.aio.msg import Msg

from dynamo_shared.bus.nats import management
from dynamo_shared.bus.nats.keeper import Keeper
from dynamo_shared.bus.nats.pull import NANOSECONDS, DeliveryMetadata, Puller, metadata_of
from dynamo_shared.bus.nats.resuming import Declare, Resuming
from dynamo_shared.bus.nats.session import TRANSLATED, translate
from dynamo_shared.bus.protocol import ACK_TIMEOUT, ConsumerSpec, Message


class NatsDelivery:
    """One delivery; see `Delivery` in `protocol`.

    An answer is a message to the delivery's reply subject, so it can use another session than the delivery.
    """

    def __init__(self, keeper: Keeper, raw: Msg, metadata: DeliveryMetadata) -> None:
        self._keeper = keeper
        self._reply = raw.reply
        self.message = Message(raw.subject, raw.data, raw.headers or {}, metadata.stream_sequence)
        self.deliveries = metadata.deliveries

    async def ack(self) -> None:
        """Acknowledge, and wait for the server's confirmation."""
        await self._answer(b"+ACK")

    async def nak(self, delay: float = 0.0) -> None:
        """Request another delivery after `delay` seconds."""
        await self._answer(b"-NAK" + (b' {"delay": %d}' % int(delay * NANOSECONDS) if delay else b""))

    async def reject(self) -> None:
        """Request that it is never delivered again."""
        await self._answer(b"+TERM")

    async def in_progress(self) -> None:
        """Restart the ack wait."""
        await self._answer(b"+WPI")

    async def _answer(self, verb: bytes) -> None:
        session = self._keeper.session()
        try:
            await session.call(session.client.request, self._reply, verb, timeout=ACK_TIMEOUT)
        except TRANSLATED as error:
            raise translate(error) from error


class NatsConsumer(Resuming[NatsDelivery]):
    """See `Consumer` in `protocol`."""

    def __init__(self, keeper: Keeper, declare: Declare, spec: ConsumerSpec, prefetch: int) -> None:
        super().__init__(keeper, declare, spec.stream, f"consumer {spec.name}")
        self._spec = spec
        self._prefetch = prefetch

    async def _next(self, puller: Puller) -> NatsDelivery:
        await puller.refill()
        raw = puller.take_ready() or await puller.take()
        return NatsDelivery(self._keeper, raw, metadata_of(raw.reply))

    async def establish(self) -> None:
        """Create the durable consumer if necessary, and start to receive on the current session."""
        session = self._keeper.session()
        name = await management.make_durable(session, self._spec)
        puller = Puller(session, self._spec.stream.name, name, self._prefetch)
        await puller.start()
        self._puller = puller

    async def _give_back(self, puller: Puller) -> None:
        while (raw := puller.take_ready()) is not None:
            try:
                await raw.nak()
            except TRANSLATED:
                # It is delivered again a little later, after the ack wait.
                break
