"""Composition root: all parts of the admission service on one page."""

import asyncio
import contextlib
import gc
import time
from collections.abc import Mapping
from datetime import UTC, datetime

import structlog
from dynamo_shared.api.adapted import is_of
from dynamo_shared.api.registry import labels
from dynamo_shared.api.resources import DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS
from dynamo_shared.kube import KubeError
from dynamo_shared.kube.openapi import SchemaSource
from dynamo_shared.runtime import HealthState, ServiceContext
from dynamo_shared.runtime.endpoints import ALL_ADDRESSES

from dynamo_admission import facts, server
from dynamo_admission.address import address_of
from dynamo_admission.callers import Callers
from dynamo_admission.metrics import AdmissionMetrics
from dynamo_admission.registrar import NotInstalled, Registrar, owner_of
from dynamo_admission.registration import Registration
from dynamo_admission.restore import PodRestorer, finder
from dynamo_admission.selftest import Listener, SelfTestFailed, handshake, self_test, trusting
from dynamo_admission.tls import Certificates, open_certificates
from dynamo_admission.wire import AdmissionRequest

NAME = "admission"
FIELD_MANAGER = "dynamo-admission"
#: Time limit for reading objects that an answer needs; if that fails, the service answers without them. Seconds.
LOOK_UP_WITHIN = 2.0
#: The adapters of a graph of 25 components have some 50 KB; anyone may label thousands of large ones. Bytes.
ADAPTERS_BYTES = 1 << 20
#: Pause between attempts of the first registration. Seconds.
RETRY_AFTER = 1.0
#: Interval for reading schemas, which change with the cluster's version. Seconds.
SCHEMAS_EVERY = 60.0

log = structlog.get_logger("dynamo.admission")


class AdmissionService:
    """Answers the API server's calls: defaults of an object, admission or refusal, conversion to another version."""

    name = NAME
    #: The service uses neither NATS nor etcd: replicas share their state through Secrets and the registration.
    api_server_alone = True

    async def run(self, context: ServiceContext) -> None:
        """Serve until cancelled, and then a little longer."""
        with AdmissionMetrics(context.metrics.registry) as metrics:
            await _Admission(context, metrics).serve()


class _Admission:
    def __init__(self, context: ServiceContext, metrics: AdmissionMetrics) -> None:
        self._context = context
        self._kube = kube = context.kube.acting_as(FIELD_MANAGER)
        self._metrics = metrics
        self._address = address_of(context.settings)
        self._registrar = Registrar(kube, metrics)
        admission = context.settings.platform.admission
        self._callers = Callers(required=admission.client_ca_file is not None, names=admission.client_names)
        self._writing = asyncio.Lock()
        #: Set when the registration is due for a check: it was written, or writing failed.
        self._check = asyncio.Event()
        #: Set when the first write of the registration has succeeded or failed.
        self._attended = asyncio.Event()
        #: Whether the current registration has been tested, and whether any test ever succeeded.
        self._tested = self._worked = False
        self._certificates: Certificates
        self._listener: Listener

    async def serve(self) -> None:
        """Read the cluster's facts, listen, register, test: then ready. At the end: not ready, drain, then close."""
        settings, webhook = self._context.settings, self._context.settings.server.webhook
        self._context.health.set(NAME, HealthState.FAILED, "starting")
        self._certificates = await open_certificates(settings, self._kube, self._address.names, time.time)
        schemas = SchemaSource(self._kube, interval=SCHEMAS_EVERY)
        world = await facts.read(facts.first_world(settings), self._kube, settings, datetime.now(UTC))
        state = server.ServerState(world, await schemas.checker())
        answering = server.ReviewServer(
            state,
            self._metrics,
            max_in_flight=settings.platform.admission.max_in_flight,
            find_adapters=self._find_adapters,
            review_pod=PodRestorer(finder(self._kube, LOOK_UP_WITHIN), settings.checkpoint.seccomp.localhost).review,
            callers=self._callers,
        )
        tls = self._certificates.context
        async with server.listening(answering.app(), webhook.host, webhook.port, tls) as port:
            host = "127.0.0.1" if webhook.host in ALL_ADDRESSES else webhook.host
            self._listener = Listener(port, self._address, host)
            # The objects that exist now stay: the garbage collector need not traverse them while requests are answered.
            gc.freeze()
            try:
                async with asyncio.TaskGroup() as tasks:
                    keep = self._context.supervisor(NAME).keep
                    tasks.create_task(keep("certificates", lambda: self._certificates.keep(self._register)))
                    tasks.create_task(keep("registration", self._keep_registered))
                    tasks.create_task(keep("facts", lambda: self._refresh(state, schemas)))
            except asyncio.CancelledError:
                await self._drain(state)
                raise
            finally:
                gc.unfreeze()

    async def _drain(self, state: server.ServerState) -> None:
        """Report that this replica is not ready, and serve until requests stop."""
        self._context.health.set(NAME, HealthState.FAILED, "ending")
        state.draining = True
        await asyncio.sleep(self._context.settings.platform.admission.drain)

    async def _registration(self) -> Registration:
        certificates, settings = self._certificates, self._context.settings
        owner = await owner_of(self._kube, settings.platform.admission.owner)
        return Registration(
            self._address,
            certificates.bundle,
            certificates.inject_from,
            settings.namespace.restricted,
            owner,
            facts.operators(settings),
            restores=settings.checkpoint.enabled,
        )

    async def _register(self) -> None:
        """Write the desired registration. Raises KubeError, NotInstalled."""
        try:
            async with self._writing:
                await self._registrar.write(await self._registration())
                self._tested = False
        finally:
            self._attended.set()
            self._check.set()

    async def _keep_registered(self) -> None:
        """Check, repair and test the registration, and report its health."""
        await self._attended.wait()
        every = self._context.settings.platform.admission.check
        while True:
            self._check.clear()
            pause = every
            try:
                async with self._writing:
                    await self._registrar.check(await self._registration())
                    await self._test()
                self._context.health.ok(NAME)
            except (KubeError, NotInstalled, SelfTestFailed) as error:
                # Without the API server no requests come, and it keeps its registration of this webhook.
                away = self._worked and isinstance(error, KubeError)
                what = "self test" if isinstance(error, SelfTestFailed) else "registration"
                self._context.health.set(NAME, HealthState.DEGRADED if away else HealthState.FAILED, f"{what}: {error}")
                self._tested = False
                pause = min(every, RETRY_AFTER)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._check.wait()

    async def _test(self) -> None:
        """Run the full self test once per registration; later check only that the served certificate is trusted."""
        bundles = self._registrar.bundles
        try:
            if self._tested:
                for bundle in dict.fromkeys(bundles):
                    await handshake(self._listener, trusting(bundle))
            else:
                await self_test(self._listener, bundles, self._callers.self_test)
                self._metrics.self_tests.labels("passed").inc()
                log.info("admission works", host=self._address.host, port=self._listener.port)
        except SelfTestFailed:
            self._metrics.self_tests.labels("failed").inc()
            raise
        self._tested = self._worked = True
        self._metrics.certificate_ends.set(self._certificates.expires)

    async def _refresh(self, state: server.ServerState, schemas: SchemaSource) -> None:
        """Read the facts of the cluster. Facts that cannot be read stay unchanged."""
        while True:
            await asyncio.sleep(self._context.settings.platform.admission.refresh)
            try:
                state.world = await facts.read(state.world, self._kube, self._context.settings, datetime.now(UTC))
                state.checker = await schemas.checker()
            except KubeError as error:
                log.warning("cannot refresh the facts of the cluster", error=str(error))
            except Exception:
                # Known facts stay valid: refusing every write would be worse than slightly outdated facts.
                log.exception("cannot refresh the facts of the cluster")

    async def _find_adapters(self, request: AdmissionRequest) -> Mapping[str, int] | None:
        try:
            async with asyncio.timeout(LOOK_UP_WITHIN):
                adapters = await self._kube.list(
                    DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS,
                    request.namespace,
                    label_selector=f"{labels.GRAPH_DEPLOYMENT_NAME}={request.name}",
                    most=ADAPTERS_BYTES,
                )
        except (KubeError, TimeoutError):
            return None
        graph = request.old_object or {}
        return {
            each["spec"]["dgdRef"]["componentName"]: each["spec"]["replicas"] for each in adapters if is_of(each, graph)
        }
