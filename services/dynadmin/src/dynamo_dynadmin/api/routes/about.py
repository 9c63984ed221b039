"""Routes about the service, the cluster, and the caller's rights."""

from collections.abc import Iterator

from aiohttp import web

from dynamo_dynadmin.api.routes.section import PREFIX, RouteSection, Topics
from dynamo_dynadmin.http.call import Call
from dynamo_dynadmin.http.compression import Precompressed
from dynamo_dynadmin.http.routes import Route


def about(topics: Topics, document: bytes) -> Iterator[Route]:
    """The document, namespaces, capabilities, and the caller."""
    route = RouteSection("about", PREFIX)

    compressed = Precompressed(document)

    async def openapi(call: Call) -> web.StreamResponse:
        return compressed.answer(call.request, "application/json")

    yield route("GET /openapi.json", "getOpenApi", "This document.", openapi, "Any", public=True)
    summary = "Namespaces in which the caller may list graph deployments."
    yield route("GET /namespaces", "listNamespaces", summary, topics.cluster.namespaces, "Namespaces")
    summary = "Served versions, orchestrators, and GPUs by kind and node."
    yield route("GET /capabilities", "getCapabilities", summary, topics.cluster.capabilities, "Capabilities", "expired")
    yield route("GET /me", "getMe", "Who the caller is.", topics.cluster.me, "Me")
    summary = "What the caller may do in a namespace."
    yield route(
        "GET /namespaces/{namespace}/me/access", "getAccess", summary, topics.cluster.access, "Rights", "not-found"
    )
