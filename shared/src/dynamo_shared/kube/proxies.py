"""The proxy to the API server, if any, by the rules of kubectl.

`proxy-url` of the kubeconfig wins, otherwise HTTPS_PROXY/HTTP_PROXY of the environment, unless NO_PROXY matches the
server. This reads NO_PROXY itself: Python does not support CIDR blocks in it, which clusters usually need.
"""

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit


def proxy_for(server: str, environ: Mapping[str, str]) -> str | None:
    """The proxy's URL for the server's URL, or None for a direct connection. Loopback is always direct, like in Go."""
    parts = urlsplit(server)
    host = (parts.hostname or "").lower()
    if host == "localhost" or _is_loopback(host):
        return None
    name = "HTTPS_PROXY" if parts.scheme == "https" else "HTTP_PROXY"
    proxy = environ.get(name) or environ.get(name.lower())
    if not proxy or _excluded(host, parts.port, environ.get("NO_PROXY") or environ.get("no_proxy") or ""):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def _excluded(host: str, port: int | None, no_proxy: str) -> bool:
    return any(_matches(host, port, rule.strip().lower()) for rule in no_proxy.split(",") if rule.strip())


def _matches(host: str, port: int | None, rule: str) -> bool:
    if rule == "*":
        return True
    address = _address(host)
    if address is not None:
        try:
            return address in ipaddress.ip_network(rule, strict=False)
        except ValueError:
            pass
    name, separator, rule_port = rule.rpartition(":")
    if separator and rule_port.isdigit() and "]" not in rule_port:
        if port is None or int(rule_port) != port:
            return False
        rule = name
    rule = rule.strip("[]")
    if rule.startswith("*."):
        rule = rule[1:]
    if rule.startswith("."):
        return host.endswith(rule)
    return host == rule or host.endswith(f".{rule}")


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _is_loopback(host: str) -> bool:
    address = _address(host)
    return address is not None and address.is_loopback
