"""Rules of how pods resolve names, and of ports of their node. Each takes an object as it is."""

from typing import Any

from dynamo_shared.api.embedded.rules import names
from dynamo_shared.api.objects import MAIN
from dynamo_shared.api.rules import Location, Violations
from dynamo_shared.api.untrusted.reading import items, mapping

#: What resolvers take.
_MOST_SERVERS, _MOST_DOMAINS = 3, 32
#: Of all domains, and of the blanks between them. Characters.
_LONGEST_DOMAINS = 2048


def dns(value: dict[str, Any]) -> Violations:
    """A resolver takes so many servers and domains, each of them a valid one, and options have names."""
    servers, domains = items(value.get("nameservers")), items(value.get("searches"))
    if len(servers) > _MOST_SERVERS:
        yield ("nameservers",), f"must not have more than {_MOST_SERVERS} servers, not {len(servers)}"
    for index, each in enumerate(servers):
        if isinstance(each, str) and (problem := names.wrong_address(each)):
            yield ("nameservers", index), problem
    if len(domains) > _MOST_DOMAINS:
        yield ("searches",), f"must not have more than {_MOST_DOMAINS} domains, not {len(domains)}"
    length = sum(len(each.encode(errors="replace")) + 1 for each in domains if isinstance(each, str)) - 1
    if length > _LONGEST_DOMAINS:
        yield (
            ("searches",),
            f"has {length} characters including blanks between domains, but at most {_LONGEST_DOMAINS} are allowed",
        )
    for index, each in enumerate(domains):
        if isinstance(each, str) and (problem := names.wrong_search_domain(each)):
            yield ("searches", index), problem
    for index, each in enumerate(items(value.get("options"))):
        if isinstance(each, dict) and not each.get("name"):
            yield ("options", index, "name"), "required: the name of an option, such as ndots"


def host_ports(value: dict[str, Any]) -> Violations:
    """A port of the node is one container's, by protocol and address; in its network, all ports are the node's."""
    taken: set[tuple[Any, ...]] = set()
    for at, container in _containers(value):
        for number, port in enumerate(map(mapping, items(container.get("ports")))):
            given = port.get("hostPort")
            if not isinstance(given, int) or not given:
                continue
            place = (*at, "ports", number, "hostPort")
            if value.get("hostNetwork") is True and given != port.get("containerPort"):
                yield place, "must be the containerPort, because hostNetwork is true: leave this out"
            key = (port.get("protocol") or "TCP", port.get("hostIP") or "", given)
            if all(isinstance(each, str | int) for each in key):
                if key in taken:
                    yield place, f"{given} is already the number of another port"
                taken.add(key)


def _containers(value: dict[str, Any]) -> list[tuple[Location, dict[str, Any]]]:
    """Containers that run at the same time. A pod of v1alpha1 has its engine in mainContainer, and no other one of its name."""
    others: list[tuple[Location, dict[str, Any]]] = [
        (("containers", index), mapping(each)) for index, each in enumerate(items(value.get("containers")))
    ]
    if not isinstance(main := value.get("mainContainer"), dict):
        return others
    return [(("mainContainer",), main), *(each for each in others if each[1].get("name") != MAIN)]
