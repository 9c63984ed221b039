"""Composition root: all that the admission service is made of, on one page."""

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
from dynamo_shared.runtime.sockets import ALL_ADDRESSES

from dynamo_admission import facts, server
from dynamo_admission.address import address_of
from dynamo_admission.callers import Callers
from dynamo_admission.metrics import AdmissionMetrics
from dynamo_admission.ownership import owner_of
from dynamo_admission.registering import NotInstalled, Registrar
from dynamo_admission.registration import Registration
from dynamo_admission.restore import PodRestorer, finder
from dynamo_admission.selftest import Listener, SelfTestFailed, self_test, shake_hands, trusting
from dynamo_admission.tls import Certificates, open_certificates
from dynamo_admission.wire import AdmissionRequest

NAME = "admission"
FIELD_MANAGER = "dynamo-admission"
#: For reading what an answer needs: it does without where that fails. Seconds.
LOOK_UP_WITHIN = 2.0
#: Between attempts to be registered for the first time. Seconds.
RETRY_AFTER = 1.0
#: Schemas change with the cluster's version. Seconds.
SCHEMAS_EVERY = 60.0

log = structlog.get_logger("dynamo.admission")


class AdmissionService:
    """Answers the API server's questions: what defaults an object gets, whether it is let in, how it reads in another version."""

    name = NAME
    #: NATS and etcd are not asked for anything: replicas share what they must through Secrets and the registration itself.
    api_server_alone = True

    async def run(self, context: ServiceContext) -> None:
        """Serve until cancelled, and then a little longer."""
        metrics = AdmissionMetrics(context.metrics.registry)
        try:
            await _Admission(context, metrics).serve()
        finally:
            metrics.close()


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
        #: The registration is due for a check: it was written, or that failed.
        self._check = asyncio.Event()
        #: It was written, or that failed, at least once.
        self._attended = asyncio.Event()
        #: Whether what is registered now has been tested, and whether anything ever was with success.
        self._tested = self._worked = False
        self._certificates: Certificates
        self._listener: Listener

    async def serve(self) -> None:
        """Know the cluster, listen, be registered, be tested: ready. When it ends: not ready, serve on, then close."""
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
            # What is here now stays: the collector need not traverse it again and again while requests are answered.
            gc.freeze()
            try:
                async with asyncio.TaskGroup() as tasks:
                    keep = self._context.supervisor(NAME).keep
                    tasks.create_task(keep("certificates", lambda: self._certificates.keep(self._register)))
                    tasks.create_task(keep("registration", self._attend))
                    tasks.create_task(keep("facts", lambda: self._refresh(state, schemas)))
            except asyncio.CancelledError:
                await self._drain(state)
                raise
            finally:
                gc.unfreeze()

    async def _drain(self, state: server.ServerState) -> None:
        """Report that this replica is not ready, and serve until requests cease."""
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
        """Write the registration exactly as it is to be now. Raises KubeError, NotInstalled."""
        try:
            async with self._writing:
                await self._registrar.write(await self._registration())
                self._tested = False
        finally:
            self._attended.set()
            self._check.set()

    async def _attend(self) -> None:
        """Check the registration, repair it, test that it works, and report its health."""
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
                # Without the API server no requests come, and what it knew of this webhook it will know again.
                away = self._worked and isinstance(error, KubeError)
                what = "self test" if isinstance(error, SelfTestFailed) else "registration"
                self._context.health.set(NAME, HealthState.DEGRADED if away else HealthState.FAILED, f"{what}: {error}")
                self._tested = False
                pause = min(every, RETRY_AFTER)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._check.wait()

    async def _test(self) -> None:
        """Everything once; after that, whether the certificate that is served is one that is trusted."""
        bundles = self._registrar.bundles
        try:
            if self._tested:
                for bundle in dict.fromkeys(bundles):
                    await shake_hands(self._listener, trusting(bundle))
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
        """Know the cluster as it is now. What cannot be asked stays as it was."""
        while True:
            await asyncio.sleep(self._context.settings.platform.admission.refresh)
            try:
                state.world = await facts.read(state.world, self._kube, self._context.settings, datetime.now(UTC))
                state.checker = await schemas.checker()
            except KubeError as error:
                log.warning("facts of the cluster not refreshed", error=str(error))
            except Exception:
                # What is known stays valid; refusing every write would be worse than facts that are a bit old.
                log.exception("facts of the cluster not refreshed")

    async def _find_adapters(self, request: AdmissionRequest) -> Mapping[str, int] | None:
        try:
            async with asyncio.timeout(LOOK_UP_WITHIN):
                adapters = await self._kube.list(
                    DYNAMO_GRAPH_DEPLOYMENT_SCALING_ADAPTERS,
                    request.namespace,
                    label_selector=f"{labels.GRAPH_DEPLOYMENT_NAME}={request.name}",
                )
        except (KubeError, TimeoutError):
            return None
        graph = request.old_object or {}
        return {
            each["spec"]["dgdRef"]["componentName"]: each["spec"]["replicas"] for each in adapters if is_of(each, graph)
        }
