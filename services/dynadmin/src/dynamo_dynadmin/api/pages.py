"""Lists of the API server, page by page: users write any number of objects of any size."""

from collections.abc import AsyncGenerator

from dynamo_shared.api.objects import KubeObject
from dynamo_shared.api.resources import Resource
from dynamo_shared.kube import KubeClient, ResponseTooLarge

#: Objects of a page. It is decoded at once, so other requests wait for it: five milliseconds for usual Events.
READ = 500
#: Bytes of a page; decoded, they take up to twenty times as many. If objects are larger, pages have fewer.
_LARGEST_PAGE, _FEWER = 2 << 20, 5


async def pages(
    kube: KubeClient, resource: Resource, namespace: str = "", *, field_selector: str = "", most: int | None = None
) -> AsyncGenerator[KubeObject]:
    """The pages of a list, at most `most` requests. Raises KubeError."""
    token, limit, asked = "", READ, 0
    while most is None or asked < most:
        asked += 1
        try:
            page = await kube.list_page(
                resource,
                namespace,
                field_selector=field_selector,
                limit=limit,
                continue_=token,
                most=_LARGEST_PAGE,
            )
        except ResponseTooLarge:
            if limit == 1:
                raise
            limit = max(1, limit // _FEWER)
            continue
        yield page
        if not (token := page["metadata"].get("continue")):
            return
