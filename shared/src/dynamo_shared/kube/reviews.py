"""Asks the API server about another user's request: the user of a token, and the rights of that user."""

from collections.abc import Mapping, Sequence
from typing import Any

from dynamo_shared.api.resources import ACCESS_REVIEWS, TOKEN_REVIEWS
from dynamo_shared.kube.client import KubeClient

#: A longer text is not a token; servers limit headers to about this length.
LONGEST_TOKEN = 16384


def plausible(token: str) -> bool:
    """Whether a text could be a bearer token. The API server is not asked about any other text."""
    return bool(token) and len(token) <= LONGEST_TOKEN and token.isascii() and token.isprintable()


async def review_token(kube: KubeClient, token: str, audiences: Sequence[str] = ()) -> Mapping[str, Any]:
    """The status of a TokenReview. Without audiences the token must be for the API server. Raises KubeError."""
    spec: dict[str, Any] = {"token": token}
    if audiences:
        spec["audiences"] = list(audiences)
    review = {**TOKEN_REVIEWS.type_meta, "metadata": {}, "spec": spec}
    return (await kube.create(TOKEN_REVIEWS, review)).get("status") or {}


async def review_access(kube: KubeClient, spec: Mapping[str, Any]) -> tuple[bool, str]:
    """Whether a SubjectAccessReview's spec is allowed, and the API server's reason. Raises KubeError."""
    review = {**ACCESS_REVIEWS.type_meta, "metadata": {}, "spec": dict(spec)}
    status = (await kube.create(ACCESS_REVIEWS, review)).get("status") or {}
    return bool(status.get("allowed")) and not status.get("denied"), str(status.get("reason") or "")
