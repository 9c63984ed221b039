"""Forms of names in Kubernetes, each as a rule whose message says what is allowed."""

import re
from typing import Any

from dynamo_shared.api.embedded.findings import Check, FindingsLimit, Problems
from dynamo_shared.api.field_errors import shown
from dynamo_shared.api.rules import Violations
from dynamo_shared.api.untrusted.reading import mapping

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_PORT = re.compile(r"(?=.*[a-z])[a-z0-9]+(-[a-z0-9]+)*")
_QUALIFIED = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
# The relaxed form, which all supported versions of Kubernetes accept: printable ASCII.
_VARIABLE = re.compile(r"[ -<>-~]+")
_FILE = re.compile(r"(?!\.\.|\.$)[-._a-zA-Z0-9]+")
_HEADER = re.compile(r"[-A-Za-z0-9]+")
_SEGMENT = r"[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_SYSCTL = re.compile(rf"{_SEGMENT}([./]{_SEGMENT})*")
# The relaxed form of Kubernetes 1.32 and later.
_SEARCHED = re.compile(rf"_?{_SEGMENT}(\._?{_SEGMENT})*")
#: A byte of an IPv4 address, with any number of leading zeros.
_BYTE = r"0*(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_IPV4 = re.compile(rf"{_BYTE}(\.{_BYTE}){{3}}")
_IPV6_GROUP = re.compile(r"0*[0-9A-Fa-f]{1,4}")
_IPV6_GROUPS = 8

LABEL_WORDS = "lower-case letters, digits and '-', a letter or digit first and last, at most 63 characters"


def _form(pattern: re.Pattern[str], limit: int, what: str, words: str) -> Check:
    def check(value: Any, budget: FindingsLimit) -> Problems:
        # An empty name is either reported as missing, or counts as absent.
        if not value or (len(value) <= limit and pattern.fullmatch(value)):
            return None
        return budget.problem(f"{shown(value)} is not a valid {what}: {words}")

    return check


dns_label = _form(_LABEL, 63, "name", LABEL_WORDS)
dns_subdomain = _form(
    _SUBDOMAIN, 253, "object name", "lower-case letters, digits, '-' and '.', a letter or digit first and last"
)
port_name = _form(
    _PORT, 15, "port name", "at most 15 lower-case letters, digits and single '-' between them, and at least one letter"
)
variable_name = _form(
    _VARIABLE, 2**20, "name of an environment variable", "printable ASCII characters, and no '=' among them"
)


key_of_data = _form(
    _FILE, 253, "key of a Secret or ConfigMap", "letters, digits, '-', '_' and '.', and no '..' at the beginning"
)
header_name = _form(_HEADER, 2**20, "name of an HTTP header", "letters, digits and '-'")
sysctl_name = _form(
    _SYSCTL,
    253,
    "name of a kernel parameter",
    "lower-case letters, digits, '-' and '_', in parts that '.' or '/' separates",
)


def qualified_name(value: Any, budget: FindingsLimit) -> Problems:
    """The key of a label, or another qualified name."""
    problem = wrong_key(value) if value else ""
    return budget.problem(f"{shown(value)} {problem}") if problem else None


def address(value: Any, budget: FindingsLimit) -> Problems:
    """An IP address."""
    problem = wrong_address(value) if value else ""
    return budget.problem(problem) if problem else None


def env_source_name(value: Any, budget: FindingsLimit) -> Problems:
    """The name in `envFrom`. The API server accepts a '-' at the end, although no object has such a name."""
    stem = value.removesuffix("-")
    return dns_subdomain(f"{stem}a" if stem and stem != value else value, budget)


def wrong_address(value: str) -> str:
    """Why a string is not an IP address; empty if it is one. As in the API server, numbers may have leading zeros."""
    if _IPV4.fullmatch(value) or (":" in value and _is_ipv6(value)):
        return ""
    return f"{shown(value)} is not an IP address; examples: 10.9.8.7, 2001:db8::1"


def wrong_search_domain(value: str) -> str:
    """Why a string is not a valid DNS search domain; empty if it is one. The root (`.`) is valid."""
    name = value.removesuffix(".")
    if value == "." or (len(name) <= 253 and _SEARCHED.fullmatch(name)):
        return ""
    return (
        f"{shown(value)} is not a valid domain: lower-case letters, digits, '-' and '_' in parts with '.' between "
        "them, at most 253 characters"
    )


def _is_ipv6(text: str) -> bool:
    first, gap, last = text.partition("::")
    groups = [each for part in (first, last) if part for each in part.split(":")]
    count = len(groups)
    if groups and _IPV4.fullmatch(groups[-1]) and not text.endswith(":"):
        # The last four bytes may have the form of IPv4.
        groups.pop()
        count += 1
    # `::` replaces at least one group.
    right_number = count < _IPV6_GROUPS if gap else count == _IPV6_GROUPS
    return right_number and all(map(_IPV6_GROUP.fullmatch, groups))


def wrong_object_name(name: str) -> str:
    """Why a string is not a valid object name; empty if it is one."""
    problems = dns_subdomain(name, FindingsLimit())
    return problems[0].message if problems else ""


def wrong_key(key: str) -> str:
    """Why a string is not a valid key of a label, annotation or extended resource; empty if it is one."""
    prefix, slash, name = key.rpartition("/")
    if _QUALIFIED.fullmatch(name) and (not slash or (len(prefix) <= 253 and _SUBDOMAIN.fullmatch(prefix))):
        return ""
    return (
        "is not a valid key: at most 63 letters, digits, '-', '_' and '.', a letter or digit first and last, "
        "optionally after a DNS name and a '/'"
    )


def wrong_label_value(value: str) -> str:
    """Why a string is not a valid label value; empty if it is one."""
    if _VALUE.fullmatch(value):
        return ""
    return (
        f"{shown(value)} is not a valid label value: at most 63 letters, digits, '-', '_' and '.', a letter or "
        "digit first and last"
    )


def wrong_labels(value: dict[str, Any], field: str) -> Violations:
    """Errors of the keys and values of the labels (or of a selector) in a field."""
    for key, given in mapping(value.get(field)).items():
        problem = wrong_key(str(key)) or (wrong_label_value(given) if isinstance(given, str) else "")
        if problem:
            yield (field, key), problem
