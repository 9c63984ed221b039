"""The users of the platform's NATS, as its servers read them."""

from __future__ import annotations

import json
from collections.abc import Mapping

FILE = "authorization.conf"


def authorization(passwords: Mapping[str, str], cluster_name: str) -> str:
    """`authorization.conf`: one user a service, with its password."""
    del cluster_name
    users = (f"    {{user: {json.dumps(name)}, password: {json.dumps(passwords[name])}}}" for name in passwords)
    return "authorization {\n  users = [\n" + "\n".join(users) + "\n  ]\n}\n"
