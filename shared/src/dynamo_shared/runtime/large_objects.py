"""Work on objects that may be large, in threads."""

from collections.abc import Callable
from typing import TypeVar

from dynamo_shared.aio import Offload
from dynamo_shared.api import objects
from dynamo_shared.api.objects import KubeObject

T = TypeVar("T")


async def in_turn(large: Offload, obj: KubeObject, work: Callable[[], T]) -> T:
    """The result of work on an object; its errors are raised. Large objects of one namespace wait for each other."""
    return await large.run(objects.size_of(obj), work, objects.namespace(obj))
