"""Composition root: all parts of the dynadmin service, on one page."""

import asyncio
import gc
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial

import msgspec
import structlog
from dynamo_shared.api import resources
from dynamo_shared.api.resources import Resource
from dynamo_shared.runtime import HealthState, ServiceContext, Settings
from dynamo_shared.runtime.endpoints import server_tls, serving

from dynamo_dynadmin.api.actions import Actions
from dynamo_dynadmin.api.chat import Chat
from dynamo_dynadmin.api.cluster import Cluster
from dynamo_dynadmin.api.collection_reader import CollectionReader
from dynamo_dynadmin.api.decisions import DecisionReader
from dynamo_dynadmin.api.details import Details
from dynamo_dynadmin.api.estimates import Estimates
from dynamo_dynadmin.api.events import EventReader
from dynamo_dynadmin.api.intent_deployer import IntentDeployer, Planned
from dynamo_dynadmin.api.logs import Logs, on_simulated_nodes
from dynamo_dynadmin.api.object_writer import ObjectWriter
from dynamo_dynadmin.api.replays import TrafficReplays
from dynamo_dynadmin.api.routes.section import Topics
from dynamo_dynadmin.api.sessions import SessionPages
from dynamo_dynadmin.api.simulation import Simulation
from dynamo_dynadmin.api.table import table
from dynamo_dynadmin.api.turns import CallerSlots
from dynamo_dynadmin.deploy import PlatformDefaults
from dynamo_dynadmin.document import openapi
from dynamo_dynadmin.http.connection import HttpConnection, SlowReaders
from dynamo_dynadmin.http.server import HttpServer
from dynamo_dynadmin.http.streaming import Streams
from dynamo_dynadmin.identity.access import Access
from dynamo_dynadmin.identity.login import Logins
from dynamo_dynadmin.identity.oidc import Issuer
from dynamo_dynadmin.identity.provider import Provider, unprotected
from dynamo_dynadmin.identity.session import Sessions, key_of
from dynamo_dynadmin.identity.tokens import Tokens
from dynamo_dynadmin.metrics import DynadminMetrics
from dynamo_dynadmin.state.hub import Hub

NAME = "dynadmin"
READS: tuple[Resource, ...] = (
    resources.DYNAMO_GRAPH_DEPLOYMENTS,
    resources.DYNAMO_GRAPH_DEPLOYMENT_REQUESTS,
    resources.DYNAMO_MODELS,
    resources.DYNAMO_COMPONENT_DEPLOYMENTS,
    resources.DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS,
    resources.DYNAMO_CHECKPOINTS,
    resources.DEPLOYMENTS,
    resources.LEADER_WORKER_SETS,
    resources.POD_CLIQUE_SETS,
    resources.POD_CLIQUES,
    resources.POD_CLIQUE_SCALING_GROUPS,
    resources.PODS,
    resources.JOBS,
    resources.SERVICES,
    resources.INGRESSES,
    resources.HTTP_ROUTES,
    resources.INFERENCE_POOLS,
    resources.HORIZONTAL_POD_AUTOSCALERS,
    resources.SCALED_OBJECTS,
    resources.PERSISTENT_VOLUME_CLAIMS,
    resources.NODES,
    resources.RESOURCE_CLAIM_TEMPLATES,
    resources.RESOURCE_CLAIMS,
    resources.RESOURCE_SLICES,
)

#: Time for requests in progress after the listener is closed; aiohttp waits up to twice as long. Together with the
#: longest drain, it is less than lifecycle.SHUTDOWN_WITHIN. Seconds.
FINISH_WITHIN = 4.0

log = structlog.get_logger("dynamo.dynadmin")


@dataclass(eq=False)
class DynadminService:
    """Serves the REST API.

    `planned` renders a manifest, `simulation` creates a simulation, if the process has them. `pause` sleeps for
    seconds.
    """

    name = NAME
    planned: Planned | None = None
    simulation: Callable[[Settings], Simulation] | None = None
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep
    port: int = field(default=0, init=False)
    """the port, after the service has begun to listen"""

    async def run(self, context: ServiceContext) -> None:
        """Serve until cancelled."""
        simulation = self.simulation(context.settings) if self.simulation is not None else None
        try:
            with DynadminMetrics(context.metrics.registry) as metrics:
                await self._serve(context, metrics, simulation)
        finally:
            if simulation is not None:
                await simulation.close()

    async def _serve(self, context: ServiceContext, metrics: DynadminMetrics, simulation: Simulation | None) -> None:
        context.health.set(NAME, HealthState.FAILED, "starting")
        settings, platform = context.settings.platform.dynadmin, context.settings.platform
        kube = context.kube.acting_as(NAME)
        hub = Hub(context.bus, platform.cluster_name, READS)
        key = await asyncio.to_thread(key_of, settings.session_key_file)
        for name in unprotected(settings.oidc):
            log.warning(
                "the keys of the OIDC issuer are read without TLS: an attacker on the network can act as any "
                "user; set an https URL",
                setting=f"platform.dynadmin.oidc.{name}",
            )
        provider = Provider(settings.oidc)
        issuer = Issuer(settings.oidc, provider)
        tokens = Tokens(kube, settings.audiences, issuer if settings.oidc.issuer else None)
        sessions = Sessions(key, settings.session)
        logins = Logins(settings.oidc, key, provider, issuer) if settings.oidc.client_id else None
        access = Access(kube, settings.recheck)
        streams = Streams(
            access,
            metrics,
            total=settings.max_streams,
            of_a_user=settings.max_streams_per_user,
            heartbeat=settings.heartbeat,
            recheck=settings.recheck,
        )
        reading = CollectionReader(hub, access, streams)
        writing = ObjectWriter(reading)
        details = Details(hub, reading)
        cluster = Cluster(hub, reading, kube, platform.version)
        defaults = PlatformDefaults(platform.planner.image_repository, platform.version, platform.planner.model_secret)
        decisions = DecisionReader(context.bus, platform.cluster_name, streams)
        # The worker processes have additional limits.
        turns = CallerSlots("simulations", 4)
        topics = Topics(
            reading=reading,
            writing=writing,
            details=details,
            events=EventReader(details, streams),
            logs=Logs(hub, details, reading, streams),
            chat=Chat(reading, streams, settings.chat_within, on_simulated_nodes(hub, details)),
            decisions=decisions,
            acting=Actions(hub, reading, writing),
            cluster=cluster,
            deploying=IntentDeployer(writing, cluster, defaults, self.planned),
            estimating=Estimates(
                hub,
                reading,
                streams,
                platform=defaults,
                simulation=simulation,
                turns=turns,
                within=settings.estimate_within,
            ),
            replaying=TrafficReplays(
                decisions,
                details,
                reading,
                cluster.claims,
                simulation=simulation,
                turns=turns,
                within=settings.estimate_within,
            ),
            sessions=SessionPages(tokens, sessions, logins),
        )
        server = HttpServer(
            table(topics, msgspec.json.encode(openapi())),
            kube,
            tokens=tokens,
            sessions=sessions,
            metrics=metrics,
            settings=settings,
            clock=context.clock,
        )
        tls = await asyncio.to_thread(server_tls, settings.cert_dir) if settings.cert_dir is not None else None
        # Browsers open a few connections in addition to their streams.
        most = 2 * (settings.max_streams + settings.max_in_flight)
        connection = partial(HttpConnection, server.unreadable, SlowReaders())

        async def drain() -> None:
            context.health.set(NAME, HealthState.FAILED, "ending")
            server.draining = streams.draining = True
            await self.pause(settings.drain)

        listening = partial(serving, server.app(), settings.host, settings.port, finish_within=FINISH_WITHIN)
        async with listening(tls, connection, most=most) as self.port:
            log.info("serving", host=settings.host, port=self.port, tls=tls is not None)
            try:
                async with asyncio.TaskGroup() as tasks:
                    state = tasks.create_task(hub.run(), name="state")
                    await hub.ready.wait()
                    # Exclude current objects from garbage collection: traversing them is not needed while hundreds of
                    # streams wait.
                    gc.freeze()
                    context.health.ok(NAME)
                    await _until_cancelled(state, drain)
            finally:
                context.health.set(NAME, HealthState.FAILED, "ending")
                server.draining = True
                streams.end()


async def _until_cancelled(state: asyncio.Task[None], drain: Callable[[], Awaitable[None]]) -> None:
    """Wait while STATE is read. If this task is cancelled, drain before reading stops."""
    try:
        await asyncio.wait([state])
    except asyncio.CancelledError:
        if not state.done():
            await drain()
        raise
