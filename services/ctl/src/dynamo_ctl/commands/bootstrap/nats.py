"""The users of the platform's NATS, as its servers read them."""

from __future__ import annotations

from collections.abc import Mapping

from dynamo_shared.bus import server_config

FILE = "authorization.conf"


def authorization(passwords: Mapping[str, str], cluster_name: str) -> str:
    """`authorization.conf`: one user a service, with its password and its permissions."""
    return server_config.text({"authorization": server_config.authorization(cluster_name, passwords)})
