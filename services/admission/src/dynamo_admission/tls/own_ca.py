"""Mode auto: a CA of this service in a Secret that all replicas share. No replica leads."""

from collections.abc import Sequence

import structlog
from dynamo_shared.kube import AlreadyExists, Conflict, NotFound

from dynamo_admission.tls import pki
from dynamo_admission.tls.certificates import Certificates, Clock
from dynamo_admission.tls.clients import ClientAuthorities
from dynamo_admission.tls.rotation import SecretState, completed, plan
from dynamo_admission.tls.secret import SecretStore
from dynamo_admission.tls.timing import Timing

#: How often a change is planned again after another replica was faster.
_ATTEMPTS = 5

log = structlog.get_logger("dynamo.admission")


class OwnCertificates(Certificates):
    """The certificates of the Secret, kept up to date. Call `refresh` successfully before any other method."""

    def __init__(
        self,
        store: SecretStore,
        names: Sequence[str],
        clock: Clock,
        timing: Timing,
        clients: ClientAuthorities | None = None,
    ) -> None:
        super().__init__(clock, timing, clients)
        self._store = store
        self._names = tuple(pki.normal(name) for name in names)
        self._state = SecretState()

    @property
    def bundle(self) -> bytes:
        """All CAs that a client may need at the moment."""
        return self._state.bundle

    async def refresh(self) -> None:
        """Load the Secret, and take the due step. KubeError; Unusable if the content belongs to another owner."""
        for attempt in range(_ATTEMPTS):
            stored = await self._store.read()
            stored_state = stored.state if stored is not None else SecretState()
            begun = completed(stored_state, self._state)
            forced = stored is not None and stored.forced
            # The API server verifies certificates by its own clock, which is at least at this time; the local clock may
            # be behind.
            now = max(self._clock(), stored.written if stored is not None else 0.0)
            desired = plan(
                begun, now, self._timing, self._names,
                settled=self._settled(begun.bundle), forced=forced,
            )  # fmt: skip
            if desired == stored_state and not forced:
                break
            try:
                await self._store.write(desired, stored)
                break
            except (AlreadyExists, Conflict, NotFound):
                if attempt == _ATTEMPTS - 1:
                    raise
        self._take(desired)

    def _take(self, state: SecretState) -> None:
        before, self._state = self._state, state.public
        for authority in state.authorities:
            if authority not in before.authorities:
                log.info("authority trusted", **pki.described(authority))
        self._serve(state.serving, state.serving_key)
