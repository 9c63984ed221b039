"""The settings of a command: a file, the environment, and the command's own values."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from dynamo_shared.runtime.logging import configure_logging

if TYPE_CHECKING:
    from dynamo_shared.runtime.settings import Settings


def load(config: Path | None, flags: Mapping[str, str | None] | None = None) -> Settings:
    """The settings of a file (None: defaults), overridden by the environment and by flags. Raises InvalidSettings."""
    # Takes a third of a second, and many commands need no settings.
    from dynamo_shared.runtime.settings import load_settings

    return load_settings(config, {**os.environ, **{name: text for name, text in (flags or {}).items() if text}})


def with_cluster(settings: Settings, kubeconfig: Path | None, context: str | None) -> Settings:
    """The settings with the cluster of the command line, if given."""
    kubernetes = settings.platform.kubernetes
    if kubeconfig is not None:
        # The context in the settings belongs to the kubeconfig in the settings.
        kubernetes = kubernetes.model_copy(update={"kubeconfig": kubeconfig.absolute(), "context": context})
    elif context is not None:
        kubernetes = kubernetes.model_copy(update={"context": context})
    return with_platform(settings, kubernetes=kubernetes)


def with_platform(settings: Settings, **changes: object) -> Settings:
    """The settings with changed values in the `platform` section."""
    return settings.model_copy(update={"platform": settings.platform.model_copy(update=changes)})


def quiet(*, follow: bool = False) -> None:
    """Log little: for commands whose output is the answer, and whose errors say everything. `follow`: a command without
    an end, which also logs warnings.
    """
    configure_logging(level="warning" if follow else "error", style="console")


def start_logging(settings: Settings, *, for_people: bool) -> None:
    """Log as the settings say; by default in the format for people if `for_people`."""
    chosen = "logging" in settings.model_fields_set and "format" in settings.logging.model_fields_set
    style = "console" if for_people and not chosen else settings.logging.format
    configure_logging(level=settings.logging.level, style=style)
