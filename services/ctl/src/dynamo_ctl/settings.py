"""Settings as commands take them: a file, the environment, and what a command adds."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from dynamo_shared.runtime.logging import configure_logging

if TYPE_CHECKING:
    from dynamo_shared.runtime.settings import Settings


def load(config: Path | None, flags: Mapping[str, str | None] | None = None) -> Settings:
    """Settings of a file (none: defaults), overridden by the environment and by flags. Raises InvalidSettings."""
    from dynamo_shared.runtime.settings import load_settings  # noqa: PLC0415 - a third of a second; many commands have no settings

    return load_settings(config, {**os.environ, **{name: text for name, text in (flags or {}).items() if text}})


def with_cluster(settings: Settings, kubeconfig: Path | None, context: str | None) -> Settings:
    """The same with another cluster, where one is given on the command line."""
    kubernetes = settings.platform.kubernetes
    if kubeconfig is not None:
        # A context of the settings belongs to the kubeconfig of the settings.
        kubernetes = kubernetes.model_copy(update={"kubeconfig": kubeconfig.absolute(), "context": context})
    elif context is not None:
        kubernetes = kubernetes.model_copy(update={"context": context})
    return with_platform(settings, kubernetes=kubernetes)


def with_platform(settings: Settings, **changes: object) -> Settings:
    """The same with other values in its `platform` section."""
    return settings.model_copy(update={"platform": settings.platform.model_copy(update=changes)})


def quiet(*, follow: bool = False) -> None:
    """Log little: for commands whose output is the answer, and whose errors say all (or, if they `follow`, do not end)."""
    configure_logging(level="warning" if follow else "error", style="console")


def start_logging(settings: Settings, *, for_people: bool) -> None:
    """Log as the settings say; where they say nothing and people watch, for people."""
    chosen = "logging" in settings.model_fields_set and "format" in settings.logging.model_fields_set
    style = "console" if for_people and not chosen else settings.logging.format
    configure_logging(level=settings.logging.level, style=style)
