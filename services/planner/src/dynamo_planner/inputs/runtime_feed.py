"""Forward passes of graphs from the Dynamo runtime's own NATS, which is only read."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

from dynamo_shared.bus.nats import NatsListener, NatsOptions
from dynamo_shared.bus.protocol import BusHealth
from dynamo_shared.runtime.settings.planner import RuntimeNats

from dynamo_planner.core.observation import ForwardPass, Missing
from dynamo_planner.inputs.forward_passes import ForwardPasses, subject
from dynamo_planner.inputs.outcome import InputError, InputUnavailable


def runtime_nats_options(settings: RuntimeNats, infrastructure_address: str) -> NatsOptions | None:
    """The address and options of the runtime's NATS; None if no setting names it."""
    servers = settings.servers or tuple(part.strip() for part in infrastructure_address.split(",") if part.strip())
    if not servers:
        return None
    return NatsOptions(
        servers=servers,
        name="dynamo-planner",
        ca_file=settings.ca_file,
        cert_file=settings.cert_file,
        key_file=settings.key_file,
        user=settings.user,
        password_file=settings.password_file,
        token_file=settings.token_file,
        nkey_seed_file=settings.nkey_seed_file,
        credentials_file=settings.creds_file,
    )


class RuntimeFeed:
    """The forward passes of one graph, while it is watched. `trouble`: why it cannot be watched, if that is certain."""

    def __init__(self, listener: NatsListener, passes: ForwardPasses, trouble: str = "") -> None:
        self._listener = listener
        self._trouble = trouble
        self.passes = passes

    def read(self) -> tuple[ForwardPass, ...] | InputUnavailable:
        """The newest message of every engine, or why there is none."""
        if self._trouble:
            return InputUnavailable(why=Missing.NO_FORWARD_PASSES, message=self._trouble)
        newest = self.passes.read()
        if isinstance(newest, InputUnavailable) and self._listener.health is not BusHealth.CONNECTED:
            return InputUnavailable(
                why=Missing.UNREACHABLE, message=f"NATS of the runtime is unavailable: {self._listener.trouble}"
            )
        return newest


@asynccontextmanager
async def watch_engines(
    listener: NatsListener, namespaces: Sequence[str], passes: ForwardPasses
) -> AsyncIterator[RuntimeFeed]:
    """Subscribes to the engines of a graph, in several Dynamo namespaces while old and new workers serve in
    parallel. `passes` keeps what engines have reported when the namespaces change.
    """
    try:
        subjects = [subject(namespace) for namespace in namespaces]
    except InputError as error:
        yield RuntimeFeed(listener, passes, str(error))
        return
    async with AsyncExitStack() as stack:
        for each in subjects:
            listening = await listener.listen(each, passes.take)
            stack.push_async_callback(listening.close)
        yield RuntimeFeed(listener, passes)
