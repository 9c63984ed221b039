"""Rules of DNS and host ports. Objects may have fields of any type."""

from typing import Any

from dynamo_shared.api.embedded.rules import names
from dynamo_shared.api.objects import MAIN
from dynamo_shared.api.rules import Location, Violations
from dynamo_shared.api.untrusted.reading import items, mapping

#: Limits of DNS servers and search domains.
_MAX_SERVERS, _MAX_DOMAINS = 3, 32
#: Length limit of all domains, with a blank between them. Characters.
_MAX_DOMAINS_LENGTH = 2048


def dns(value: dict[str, Any]) -> Violations:
    """Servers and search domains are valid and not too many; options have names."""
    servers, domains = items(value.get("nameservers")), items(value.get("searches"))
    if len(servers) > _MAX_SERVERS:
        yield ("nameservers",), f"must not have more than {_MAX_SERVERS} servers, not {len(servers)}"
    for index, each in enumerate(servers):
        if isinstance(each, str) and (problem := names.wrong_address(each)):
            yield ("nameservers", index), problem
    if len(domains) > _MAX_DOMAINS:
        yield ("searches",), f"must not have more than {_MAX_DOMAINS} domains, not {len(domains)}"
    length = sum(len(each.encode(errors="replace")) + 1 for each in domains if isinstance(each, str)) - 1
    if length > _MAX_DOMAINS_LENGTH:
        yield (
            ("searches",),
            f"has {length} characters including blanks between domains, but at most {_MAX_DOMAINS_LENGTH} are allowed",
        )
    for index, each in enumerate(domains):
        if isinstance(each, str) and (problem := names.wrong_search_domain(each)):
            yield ("searches", index), problem
    for index, each in enumerate(items(value.get("options"))):
        if isinstance(each, dict) and not each.get("name"):
            yield ("options", index, "name"), "required: the name of an option, such as ndots"


def host_ports(value: dict[str, Any]) -> Violations:
    """Each host port (by protocol and address) is used once; with hostNetwork it equals the container port."""
    taken: set[tuple[Any, ...]] = set()
    for at, container in _containers(value):
        for number, port in enumerate(map(mapping, items(container.get("ports")))):
            given = port.get("hostPort")
            if not isinstance(given, int) or not given:
                continue
            location = (*at, "ports", number, "hostPort")
            if value.get("hostNetwork") is True and given != port.get("containerPort"):
                yield location, "must be the containerPort, because hostNetwork is true: leave this out"
            key = (port.get("protocol") or "TCP", port.get("hostIP") or "", given)
            if all(isinstance(each, str | int) for each in key):
                if key in taken:
                    yield location, f"{given} is already the number of another port"
                taken.add(key)


def _containers(value: dict[str, Any]) -> list[tuple[Location, dict[str, Any]]]:
    """Containers that run at the same time. A v1alpha1 pod may have `mainContainer`, which replaces the container `main`."""
    others: list[tuple[Location, dict[str, Any]]] = [
        (("containers", index), mapping(each)) for index, each in enumerate(items(value.get("containers")))
    ]
    if not isinstance(main := value.get("mainContainer"), dict):
        return others
    return [(("mainContainer",), main), *(each for each in others if each[1].get("name") != MAIN)]
