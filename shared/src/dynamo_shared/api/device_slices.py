"""GPUs that drivers of dynamic resource allocation publish as ResourceSlices. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from dynamo_shared.api.device_claims import is_gpu_class
from dynamo_shared.api.objects import KubeObject

_PRODUCTS = ("productName", "model")
"""Attributes with the product name: of NVIDIA's and AMD's drivers, and of Intel's."""


class PublishedGpu(NamedTuple):
    """A whole GPU of a node."""

    node: str
    product: str
    """empty if the driver does not publish it"""
    driver: str
    pool: str
    name: str
    fields: Mapping[str, Any]
    """the published device"""

    @property
    def device(self) -> tuple[str, str, str]:
        """Driver, pool and name, as in allocations."""
        return self.driver, self.pool, self.name


def whole_gpus(slices: Iterable[KubeObject]) -> Iterator[PublishedGpu]:
    """Whole GPUs of nodes; slices of a GPU are not counted again.

    Of each pool, only the newest published generation counts.
    """
    for each in _newest(slices):
        spec = each["spec"]
        node, driver, pool = spec.get("nodeName"), str(spec.get("driver") or ""), (spec.get("pool") or {}).get("name")
        if not node or not is_gpu_class(driver):
            continue
        for device in spec.get("devices") or ():
            attributes = device.get("attributes") or {}
            if "mig" not in str(_text(attributes, "type")).lower():
                product = next((text for name in _PRODUCTS if (text := _text(attributes, name))), "")
                yield PublishedGpu(str(node), product, driver, str(pool), str(device.get("name")), device)


def _text(attributes: Mapping[str, Any], name: str) -> str:
    return str((attributes.get(name) or {}).get("string") or "")


def _newest(slices: Iterable[KubeObject]) -> list[KubeObject]:
    pools: dict[tuple[Any, Any], list[KubeObject]] = defaultdict(list)
    for each in slices:
        spec = each.get("spec") or {}
        pools[spec.get("driver"), (spec.get("pool") or {}).get("name")].append(each)
    newest = []
    for members in pools.values():
        last = max(_generation(each) for each in members)
        newest += [each for each in members if _generation(each) == last]
    return newest


def _generation(each: KubeObject) -> int:
    return int(((each.get("spec") or {}).get("pool") or {}).get("generation") or 0)
