"""Requests replicas from the scaler: the planner writes none itself."""

from collections.abc import Callable

import structlog
from dynamo_shared.bus.commands import CommandSender
from dynamo_shared.bus.errors import BusError, BusUnavailableError, StreamFullError
from dynamo_shared.wire.specifications.scaling import PLANNER, ScaleData, ScaleTarget

from dynamo_planner.core.decision import Decision
from dynamo_planner.planning.backoff import Acted
from dynamo_planner.planning.plans import PlannedGraph

#: Seconds to wait for the scaler's answer; an unanswered command stays in the queue until a newer one replaces it.
ANSWER_WITHIN = 10.0
WITHDRAWN = "no longer desired"

log = structlog.get_logger("dynamo.planner.planning")


class ScaleSender:
    """Sends scale commands of a plan. `moment` makes each unique: the same decision, sent twice at the same time, is
    one command.

    `may_send` is called before each: a paused process may not know yet that another replica plans the graph.
    """

    def __init__(
        self, sender: CommandSender, plan: PlannedGraph, moment: str, may_send: Callable[[], bool] = lambda: True
    ) -> None:
        self._sender = sender
        self._plan = plan
        self._moment = moment
        self._may_send = may_send
        self._count = 0

    async def withdraw(self) -> bool:
        """Withdraw earlier requests that wait. Returns whether the scaler was informed: NATS may be unavailable."""
        graph = self._plan.graph
        if not self._may_send():
            return False
        data = self._data([], WITHDRAWN, withdraw=True)
        try:
            await self._sender.send("scaler", "scale", graph.namespace, data, request=self._request())
        except BusError as error:
            log.info("cannot withdraw a request from the scaler", graph=str(graph), error=str(error))
            return False
        return True

    def _data(self, targets: list[ScaleTarget], reason: str, *, withdraw: bool = False) -> ScaleData:
        """Data for this graph only: a recreated graph of the same name is planned from the beginning."""
        return ScaleData(
            graph_deployment=self._plan.graph.name,
            uid=self._plan.uid,
            targets=targets,
            reason=reason,
            requester=PLANNER,
            withdraw=withdraw,
        )

    def _request(self) -> str:
        self._count += 1
        return f"{self._plan.uid}.{self._moment}.{self._count}"

    async def __call__(self, decision: Decision) -> Acted:
        """Request the decided replicas."""
        plan, request = self._plan, self._request()
        targets = [
            ScaleTarget(component=plan.components[pool], replicas=replicas)
            for pool, replicas in decision.replicas.items()
            if pool in plan.components
        ]
        data = self._data(targets, decision.reason)
        command = self._sender.command("scaler", "scale", plan.graph.namespace, data, request).id
        if not self._may_send():
            return Acted(command, "another replica plans this graph now", done=False, answered=False, unsent=True)
        try:
            done, answer = await self._sender.ask(
                "scaler", "scale", plan.graph.namespace, data, request=request, timeout=ANSWER_WITHIN
            )
        except TimeoutError:
            return Acted(command, "the scaler has not answered yet", done=False, answered=False)
        except BusError as error:
            unsent = isinstance(error, BusUnavailableError) and not isinstance(error, StreamFullError)
            return Acted(
                command, f"the request did not reach the scaler: {error}", done=False, answered=False, unsent=unsent
            )
        answer_text = ": ".join(part for part in (answer.reason, answer.message) if part)
        return Acted(command, answer_text, done, reason=answer.reason)
