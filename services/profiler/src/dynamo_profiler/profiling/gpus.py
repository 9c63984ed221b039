"""Kinds of GPUs that a request may name: their memory, and what AI Configurator calls the systems that have them."""

from dataclasses import dataclass

from dynamo_shared.api.validation.request import GPU_SKUS

_SMALLER = 0.9
"""Drivers do not all report the same; below this share it is another model: 40 GB of an A100's 80."""


@dataclass(frozen=True, slots=True)
class GpuKind:
    """A kind of GPU."""

    vram_mib: int | None
    """memory of one, MiB, as its driver reports it; of an MI250, which is two GPUs, of each; None: not known"""
    system: str | None = None
    """what AI Configurator has figures for; None: it has none"""


#: By `hardware.gpuSku`. AI Configurator knows no L40, V100, T4, GB10, Vera Rubin nor AMD system, and of PCIe boards, A30 and
#: L4 it has a description without figures; figures of a sibling would mislead.
GPUS: dict[str, GpuKind] = {
    "vr_nvl72": GpuKind(None),
    "gb300": GpuKind(284_208, "gb300"),
    "gb200": GpuKind(189_471, "gb200"),
    "gb200_sxm": GpuKind(189_471, "gb200"),
    "gb10": GpuKind(None),
    "b300_sxm": GpuKind(275_040, "b300_sxm"),
    "b200_sxm": GpuKind(183_359, "b200_sxm"),
    "h200_sxm": GpuKind(143_771, "h200_sxm"),
    "h100_sxm": GpuKind(81_559, "h100_sxm"),
    "h100_pcie": GpuKind(81_559),
    "a100_sxm": GpuKind(81_920, "a100_sxm"),
    "a100_pcie": GpuKind(81_920),
    "a30": GpuKind(24_576),
    "rtx_pro_6000_server": GpuKind(97_887, "rtx_pro_6000_server"),
    "l40s": GpuKind(46_068, "l40s"),
    "l40": GpuKind(46_068),
    "l4": GpuKind(23_034),
    "v100_sxm": GpuKind(32_768),
    "v100_pcie": GpuKind(32_768),
    "t4": GpuKind(15_360),
    "mi200": GpuKind(65_536),
    "mi300": GpuKind(196_592),
}
#: Kinds that Dynamo's profiler, which measures engines, has as of release 1.6: it reads no others.
MEASURABLE = tuple(sku for sku in GPU_SKUS if sku not in ("gb300", "rtx_pro_6000_server"))
_TODAYS = {"gb200_sxm": "gb200"}
"""Newer names of kinds. Profilers before Dynamo 1.6 know the older ones alone, so nodes are reported by these."""


def system_of(sku: str) -> str | None:
    """What AI Configurator calls a system of such GPUs; None where it has no figures."""
    known = GPUS.get(sku)
    return known.system if known else None


def with_figures() -> str:
    """Kinds that AI Configurator has figures of, in words."""
    return ", ".join(sku for sku, kind in GPUS.items() if kind.system)


def vram_of(sku: str, stated_mib: float | None) -> float | None:
    """Memory of one GPU in MiB: as the request states it, else as its driver reports it; None where neither is known."""
    if stated_mib:
        return stated_mib
    known = GPUS.get(sku)
    return known.vram_mib if known else None


def smaller_vram(sku: str, vram_mib: float | None) -> float | None:
    """Memory of one GPU in MiB where it is a smaller model of its kind than figures are of; None where it is not."""
    known = GPUS.get(sku)
    return vram_mib if known and known.vram_mib and vram_mib and vram_mib < known.vram_mib * _SMALLER else None


def same_kind(one: str | None, other: str | None) -> bool:
    """Whether two names are of one kind: one of them may be older."""
    return one is not None and other is not None and _TODAYS.get(one, one) == _TODAYS.get(other, other)
