"""Writes the Secrets that are missing or due for renewal."""

import secrets
import time
from pathlib import Path

from dynamo_shared.api.resources import SECRETS, ObjectKey
from dynamo_shared.kube import KubeClient, get_if_present

from dynamo_ctl.commands.bootstrap.plan import SecretStep, is_created_here, manifest, plan
from dynamo_ctl.commands.bootstrap.specification import NamespaceCredentials
from dynamo_ctl.errors import CtlError

FIELD_MANAGER = "dynamo-bootstrap"
#: 256 bits, in characters that need no quotes in configuration files.
_PASSWORD_BYTES = 32
_KEY_BYTES = 32


async def carry_out(
    desired: NamespaceCredentials, namespace: str, kubeconfig: Path | None, context: str | None
) -> list[tuple[str, str]]:
    """Write the Secrets. Returns the name of each Secret and its result: created, renewed or kept. Raises KubeError if
    the API server refuses.
    """
    async with await KubeClient.open(kubeconfig=kubeconfig, context=context, field_manager=FIELD_MANAGER) as client:
        where = namespace or client.namespace
        stored = {name: await get_if_present(client, SECRETS, ObjectKey(where, name)) for name in _names(desired)}
        observed = {name: secret for name, secret in stored.items() if secret is not None}
        password, key = lambda: secrets.token_urlsafe(_PASSWORD_BYTES), lambda: secrets.token_bytes(_KEY_BYTES)
        steps = list(plan(desired, observed, time.time(), password, key))
        return [(step.name, await _write(client, where, desired, step)) for step in steps]


def _names(desired: NamespaceCredentials) -> list[str]:
    names = [
        *desired.authorities,
        *(each.secret for each in desired.certificates),
        *(each.secret for each in desired.users),
        *desired.keys,
    ]
    return [*names, *([desired.nats_authorization] if desired.nats_authorization else [])]


async def _write(client: KubeClient, namespace: str, desired: NamespaceCredentials, step: SecretStep) -> str:
    if step.content is None:
        return "kept"
    secret = manifest(step, namespace, desired)
    if step.observed is None:
        await client.create(SECRETS, secret)
        return "created"
    if not is_created_here(step.observed):
        raise CtlError(
            f"Secret {step.name} exists, was not created by this command and does not have the required content: complete it, "
            "delete it, or name another Secret"
        )
    # The patch applies only to the version that was read: two runs at once do not overwrite each other.
    secret["metadata"]["resourceVersion"] = step.observed["metadata"]["resourceVersion"]
    await client.merge_patch(
        SECRETS,
        ObjectKey(namespace, step.name),
        {"metadata": secret["metadata"], "data": {**secret["data"], **dict.fromkeys(step.removed)}},
    )
    return "renewed"
