"""Compares the API server's audit log of this installation with the rights of each service."""

from collections import Counter

from tests.e2e_platform.objects import NAMESPACE, RELEASE, SERVICES
from tests.e2e_platform.platform import Platform
from tests.rights.audit import Request, counted
from tests.rights.compare import compare
from tools.generate.charts.rights import of_service

#: Other services get objects from NATS; they need Kubernetes only for models, requests or scale commands.
ASK = {"watcher", "pod-builder", "admission", "dynadmin"}


async def rights(platform: Platform) -> None:
    """Each service uses its own ServiceAccount: no request was denied, and every request is covered by a rule."""
    with platform.held.check(
        "audit log: no request of a service was denied, each came from its own account"
    ) as details:
        result = counted(platform.audit)
        accounts = {f"system:serviceaccount:{NAMESPACE}:{RELEASE}-{service}": service for service in SERVICES}
        own = Counter({each: times for each, times in result.items() if each.user in accounts})
        strangers = {(each.user, each.service) for each in own if accounts[each.user] != each.service}
        assert not strangers, strangers
        asked = {each.service for each in own}
        assert asked >= ASK, f"no request of {ASK - asked}"
        denied = Counter({_kind(each): times for each, times in own.items() if each.forbidden})
        assert not denied, denied
        verdict = compare(own, {service: of_service(service) for service in SERVICES})
        assert not verdict.lacking, verdict.lacking
        details.append(f"denied 0 of {own.total()} requests in {len({_kind(each) for each in own})} kinds")
        details.append(f"{verdict.used} verbs of rules used by {', '.join(sorted(asked))}")


def _kind(request: Request) -> tuple[str, str, str, str]:
    return request.service, request.verb, request.group, request.plural
