"""Options of engines that people choose by hand, and the flag that each backend has for them.

An option that a backend has no flag for is absent here: the translation reports it, and never drops it.
"""

from collections.abc import Callable, Mapping
from typing import Any

Flags = Callable[[Any], tuple[str, ...]]


def _value(flag: str) -> Flags:
    return lambda value: (flag, str(value))


def _present(flag: str, *, when: bool = True) -> Flags:
    return lambda value: (flag,) if value is when else ()


#: By option, then by backend: what the option's value adds to the engine's arguments.
OPTIONS: Mapping[str, Mapping[str, Flags]] = {
    "context_length": {
        "vllm": _value("--max-model-len"),
        "sglang": _value("--context-length"),
        "trtllm": _value("--max-seq-len"),
    },
    "dtype": {"vllm": _value("--dtype"), "sglang": _value("--dtype")},
    "quantization": {"vllm": _value("--quantization"), "sglang": _value("--quantization")},
    "revision": {"vllm": _value("--revision"), "sglang": _value("--revision")},
    "trust_remote_code": {"vllm": _present("--trust-remote-code"), "sglang": _present("--trust-remote-code")},
    # Both reuse prefixes unless a flag says otherwise.
    "prefix_cache": {
        "vllm": _present("--no-enable-prefix-caching", when=False),
        "sglang": _present("--disable-radix-cache", when=False),
    },
}


def flags(backend: str, option: str, value: Any) -> tuple[str, ...] | None:
    """Arguments for an option's value; None where the backend has no flag for it."""
    make = OPTIONS[option].get(backend)
    return make(value) if make is not None else None
