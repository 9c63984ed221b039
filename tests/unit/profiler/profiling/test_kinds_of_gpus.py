"""Memory of GPUs, and smaller models of a kind."""

import pytest
from dynamo_profiler.profiling.gpus import smaller_vram, vram_of


@pytest.mark.parametrize(
    ("sku", "stated", "smaller"),
    [
        ("a100_sxm", 40_960, 40_960),
        # As drivers report, and as a bigger board has.
        ("h100_sxm", 81_559, None),
        ("h100_pcie", 95_830, None),
        ("h200_sxm", None, None),
        ("NVIDIA-RTX-6000", 49_140, None),
    ],
)
def test_smaller_models_of_a_kind(sku: str, stated: float | None, smaller: float | None) -> None:
    assert smaller_vram(sku, stated) == smaller


def test_memory_is_as_drivers_report_it():
    assert [vram_of(sku, None) for sku in ("h200_sxm", "mi200", "gtx")] == [143_771, 65_536, None]
    assert vram_of("h200_sxm", 40_000) == 40_000
