"""Memory of GPUs, smaller models of a kind, and of which AI Configurator has figures."""

from importlib.util import find_spec
from pathlib import Path

import pytest
from dynamo_profiler.profiling.gpus import GPUS, smaller_vram, system_of, vram_of
from dynamo_shared.api.validation.request import GPU_SKUS


@pytest.mark.parametrize(
    ("sku", "stated", "smaller"),
    [
        ("a100_sxm", 40_960, 40_960),
        # As drivers report, and as a bigger board has.
        ("h100_sxm", 81_559, None),
        ("h100_pcie", 95_830, None),
        ("h200_sxm", None, None),
        ("NVIDIA-RTX-6000", 49_140, None),
        ("gb10", 122_570, None),
    ],
)
def test_variants_with_less_memory_are_distinguished(sku: str, stated: float | None, smaller: float | None) -> None:
    assert smaller_vram(sku, stated) == smaller


def test_memory_equals_what_drivers_report():
    assert [vram_of(sku, None) for sku in ("h200_sxm", "mi200", "gtx")] == [143_771, 65_536, None]
    assert vram_of("h200_sxm", 40_000) == 40_000


def test_every_gpu_sku_of_requests_is_known():
    assert tuple(GPUS) == GPU_SKUS
    assert [system_of(sku) for sku in ("gb200", "gb200_sxm", "b300_sxm", "rtx_pro_6000_server", "gb10")] == [
        "gb200",
        "gb200",
        "b300_sxm",
        "rtx_pro_6000_server",
        None,
    ]


def test_ai_configurator_has_data_for_every_named_system():
    """It has folders of others, which are empty: a request for such GPUs was answered as if its model were the reason."""
    package = find_spec("aiconfigurator_core")
    assert package is not None
    assert package.origin is not None
    data = Path(package.origin).parent / "systems" / "data"
    named = {kind.system for kind in GPUS.values() if kind.system}
    assert [system for system in sorted(named) if not any((data / system).glob("*/*"))] == []
