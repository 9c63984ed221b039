"""Kinds of GPUs that a request may name: their memory, and AI Configurator's names of their systems."""

from dataclasses import dataclass

from dynamo_shared.api.validation.request import GPU_SKUS

_SMALLER = 0.9
"""Drivers report slightly different sizes. Below this share it is another model, such as A100s with 40 GB, not 80."""


@dataclass(frozen=True, slots=True)
class GpuKind:
    """A kind of GPU."""

    vram_mib: int | None
    """memory of one GPU as its driver reports it, MiB; an MI250 counts as two GPUs; None: unknown"""
    system: str | None = None
    """AI Configurator's name of the system with figures; None: it has no figures"""


#: By `hardware.gpuSku`. AI Configurator does not know L40, V100, T4, GB10, Vera Rubin or AMD systems. For PCIe boards,
#: A30 and L4, it has a description without figures. Figures of a similar GPU would mislead.
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
#: The only kinds that Dynamo's profiler, which measures engines, accepts as of release 1.6.
MEASURABLE = tuple(sku for sku in GPU_SKUS if sku not in ("gb300", "rtx_pro_6000_server"))
_TODAYS = {"gb200_sxm": "gb200"}
"""Newer name of a kind -> older name. Profilers before Dynamo 1.6 know only the older names, so nodes report these."""


def system_of(sku: str) -> str | None:
    """AI Configurator's name of a system with such GPUs; None if it has no figures."""
    known = GPUS.get(sku)
    return known.system if known else None


def with_figures() -> str:
    """The kinds with figures in AI Configurator, as text."""
    return ", ".join(sku for sku, kind in GPUS.items() if kind.system)


def vram_of(sku: str, stated_mib: float | None) -> float | None:
    """Memory of one GPU in MiB: the request's value, otherwise the driver's; None if neither is known."""
    if stated_mib:
        return stated_mib
    known = GPUS.get(sku)
    return known.vram_mib if known else None


def smaller_vram(sku: str, vram_mib: float | None) -> float | None:
    """Memory of one GPU in MiB if it is a smaller model than the figures describe; otherwise None."""
    known = GPUS.get(sku)
    return vram_mib if known and known.vram_mib and vram_mib and vram_mib < known.vram_mib * _SMALLER else None


def same_kind(one: str | None, other: str | None) -> bool:
    """Whether two names mean the same kind: one may be the older name."""
    return one is not None and other is not None and _TODAYS.get(one, one) == _TODAYS.get(other, other)
