"""Kubernetes objects as they come from the API server: decoded JSON, and what is read from any of them."""

from __future__ import annotations

from typing import Any, TypeAlias

#: One Kubernetes object, or a part of one, as decoded JSON.
KubeObject: TypeAlias = dict[str, Any]
