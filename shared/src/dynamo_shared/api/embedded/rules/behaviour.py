"""Rules of what containers and pods do: handlers, profiles, selectors, ports of the node. Each takes an object as it is."""

from typing import Any

from dynamo_shared.api.rules import Violations
from dynamo_shared.api.untrusted.reading import items, mapping

_NO_PROFILE = "required, since type is Localhost: the profile on the node"
_HANDLERS = ("exec", "httpGet", "sleep", "tcpSocket")
_WITH_VALUES, _WITHOUT_VALUES = ("In", "NotIn"), ("Exists", "DoesNotExist")


def lifecycle_handler(value: dict[str, Any]) -> Violations:
    """What happens at the start or the end of a container is one thing."""
    given = [name for name in _HANDLERS if isinstance(value.get(name), dict)]
    if len(given) > 1:
        yield (), f"must do one thing, not {' and '.join(given)}"
    elif not given and not any(value.values()):
        yield (), "must say what to do, such as exec or httpGet"


def app_armor_profile(value: dict[str, Any]) -> Violations:
    """A profile of the node has a name."""
    if value.get("type") == "Localhost" and not value.get("localhostProfile"):
        yield ("localhostProfile",), _NO_PROFILE


def seccomp_profile(value: dict[str, Any]) -> Violations:
    """A profile of the node has a path, which may be that of its folder."""
    if value.get("type") == "Localhost" and value.get("localhostProfile") is None:
        yield ("localhostProfile",), _NO_PROFILE


def requirement(value: dict[str, Any]) -> Violations:
    """Operators that compare have values, and those that ask whether there is a label have none."""
    operator, values = value.get("operator"), value.get("values")
    if operator in _WITH_VALUES and not values:
        yield ("values",), f"required, since operator is {operator}"
    if operator in _WITHOUT_VALUES and values:
        yield ("values",), f"must be empty where operator is {operator}"


def host_ports(value: dict[str, Any]) -> Violations:
    """A port of the node is one container's, by protocol and address."""
    taken: set[tuple[Any, ...]] = set()
    for index, container in enumerate(items(value.get("containers"))):
        for number, port in enumerate(items(mapping(container).get("ports"))):
            given = mapping(port).get("hostPort")
            if not isinstance(given, int) or not given:
                continue
            key = (port.get("protocol") or "TCP", port.get("hostIP") or "", given)
            if all(isinstance(each, str | int) for each in key):
                if key in taken:
                    yield ("containers", index, "ports", number, "hostPort"), f"{given} is another port's already"
                taken.add(key)
