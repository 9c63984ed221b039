"""Options of engines that users may set, and the flags of each backend for them.

A backend without a flag for an option is missing in its entry: the caller reports that the option is not supported.
"""

from collections.abc import Callable, Mapping
from typing import Any

Flags = Callable[[Any], tuple[str, ...]]


def _value(flag: str) -> Flags:
    return lambda value: (flag, str(value))


def _present(flag: str, *, when: bool = True) -> Flags:
    return lambda value: (flag,) if value is when else ()


#: Arguments for the value of an option, by option and backend.
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
    # Both engines enable the prefix cache by default.
    "prefix_cache": {
        "vllm": _present("--no-enable-prefix-caching", when=False),
        "sglang": _present("--disable-radix-cache", when=False),
    },
}


def flags(backend: str, option: str, value: Any) -> tuple[str, ...] | None:
    """Arguments for an option's value; None if the backend does not have the option."""
    make = OPTIONS[option].get(backend)
    return make(value) if make is not None else None
