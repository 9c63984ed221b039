"""Forms of names that Kubernetes demands, each as a rule with the words for what is allowed."""

import re
from typing import Any

from dynamo_shared.api.embedded.findings import Check, FindingsLimit, Problems
from dynamo_shared.api.field_errors import shown

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_PORT = re.compile(r"(?=.*[a-z])[a-z0-9]+(-[a-z0-9]+)*")
_QUALIFIED = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
# The relaxed form, which all supported versions of Kubernetes take: printable ASCII.
_VARIABLE = re.compile(r"[ -<>-~]+")

LABEL_WORDS = (
    "lower-case letters, digits and '-', begins and ends with a letter or digit, and has at most 63 characters"
)


def _form(pattern: re.Pattern[str], limit: int, what: str, words: str) -> Check:
    def check(value: Any, budget: FindingsLimit) -> Problems:
        # An empty name is either refused as missing or as good as none.
        if not value or (len(value) <= limit and pattern.fullmatch(value)):
            return None
        return budget.problem(f"{shown(value)} is not a valid {what}, which has {words}")

    return check


dns_label = _form(_LABEL, 63, "name", LABEL_WORDS)
dns_subdomain = _form(
    _SUBDOMAIN,
    253,
    "object name",
    "lower-case letters, digits, '-' and '.', and begins and ends with a letter or digit",
)
port_name = _form(
    _PORT, 15, "port name", "at most 15 lower-case letters, digits and single '-' between them, and at least one letter"
)
variable_name = _form(
    _VARIABLE, 2**20, "name of an environment variable", "printable ASCII characters, and no '=' among them"
)


def wrong_object_name(name: str) -> str:
    """What is wrong with the name of an object; empty where nothing is."""
    return next((each.message for each in dns_subdomain(name, FindingsLimit()) or ()), "")


def wrong_key(key: str) -> str:
    """What is wrong with the key of a label, annotation or extended resource; empty where nothing is."""
    prefix, slash, name = key.rpartition("/")
    if _QUALIFIED.fullmatch(name) and (not slash or (len(prefix) <= 253 and _SUBDOMAIN.fullmatch(prefix))):
        return ""
    return (
        "is not a valid key; it has at most 63 letters, digits, '-', '_' and '.', begins and ends with a letter or digit, "
        "and may stand behind a DNS name and a '/'"
    )


def wrong_label_value(value: str) -> str:
    """What is wrong with the value of a label; empty where nothing is."""
    if _VALUE.fullmatch(value):
        return ""
    return (
        f"{shown(value)} is not a valid label value, which has at most 63 letters, digits, '-', '_' and '.', "
        "and begins and ends with a letter or digit"
    )
