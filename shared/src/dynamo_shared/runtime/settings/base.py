"""What every section of the settings has in common: naming, strictness and the few field types of its own."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer
from pydantic.alias_generators import to_camel

_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?|\.\d+)(ns|us|µs|ms|s|m|h)")


class Section(BaseModel):
    """A part of the settings: camelCase in files, snake_case here, unknown names refused, never changed once read."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        extra="forbid",
        frozen=True,
        protected_namespaces=(),
        use_attribute_docstrings=True,
        validate_default=True,
        allow_inf_nan=False,
    )


def parse_duration(value: Any) -> timedelta:
    """A Go duration (`1h30m`, `500ms`, `0`), as metav1.Duration reads it. ValueError where it is none."""
    if isinstance(value, timedelta):
        return value
    if not isinstance(value, str):
        raise ValueError("must be a duration with its unit, such as 30s, 15m or 1h30m")  # noqa: TRY004 - pydantic reports ValueError
    text = value.strip()
    sign = -1 if text.startswith("-") else 1
    body = text.lstrip("+-")
    if body == "0":
        return timedelta(0)
    parts = list(_DURATION_PART.finditer(body))
    if not parts or "".join(part.group(0) for part in parts) != body:
        raise ValueError("must be a duration with its unit, such as 30s, 15m or 1h30m")
    return timedelta(seconds=sign * sum(float(part.group(1)) * _UNITS[part.group(2)] for part in parts))


def format_duration(value: timedelta) -> str:
    """As a person would write it: `15m`, `1h30m`, `0s`, `500ms`."""
    seconds = value.total_seconds()
    if seconds != int(seconds):
        return f"{seconds * 1000:g}ms"
    sign, rest = ("-", -int(seconds)) if seconds < 0 else ("", int(seconds))
    hours, rest = divmod(rest, 3600)
    minutes, rest = divmod(rest, 60)
    text = "".join(f"{number}{unit}" for number, unit in ((hours, "h"), (minutes, "m"), (rest, "s")) if number)
    return f"{sign}{text or '0s'}"


Duration = Annotated[timedelta, BeforeValidator(parse_duration), PlainSerializer(format_duration)]
"""A span of time, written as Go writes it."""

Port = Annotated[int, Field(ge=0, le=65535)]
"""A TCP port; 0 lets the system choose one."""


def _auto(value: Any) -> Any:
    return None if isinstance(value, str) and value.strip().lower() in {"auto", ""} else value


AutoBool = Annotated[bool | None, BeforeValidator(_auto)]
"""On, off, or (null, "auto") whatever the cluster offers."""

LogLevel = Literal["debug", "info", "warn", "warning", "error"]
