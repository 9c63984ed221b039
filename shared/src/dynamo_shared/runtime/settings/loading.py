"""Loads the settings from the file and the environment. One message lists all errors."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_origin

import yaml
from pydantic import BaseModel, ValidationError

from dynamo_shared.api.untrusted.yaml_text import mistake
from dynamo_shared.runtime.invalid_settings import InvalidSettings
from dynamo_shared.runtime.settings.older_names import OLDER_NAMES
from dynamo_shared.runtime.settings.operator import API_VERSION, KIND, OperatorConfiguration

PREFIX = "DYNAMO_"
#: Maximum size of a configuration file.
MAX_BYTES = 1 << 20
#: A password in an address is rejected; the message must not repeat it.
_USERINFO = re.compile(r"(?<=//)[^/@\s]+@")


def load_settings(file: Path | None = None, environ: Mapping[str, str] | None = None) -> OperatorConfiguration:
    """Settings of a YAML file (None: defaults). OLDER_NAMES override them, and `DYNAMO_SECTION__FIELD` overrides both.

    `environ` is usually `os.environ` plus the flags of OLDER_NAMES; None: no variables. Raises InvalidSettings.
    """
    source = str(file) if file is not None else "settings"
    document = _read(file) if file is not None else {}
    environ = environ or {}
    older = tuple(name for name in OLDER_NAMES if environ.get(name))
    overridden = _override(document, environ, older)
    try:
        return OperatorConfiguration.model_validate(document).with_older_names(older)
    except ValidationError as error:
        mistakes = []
        for entry in error.errors(include_url=False):
            path = ".".join(str(part) for part in entry["loc"])
            variable = f" (set by {overridden[path]})" if path in overridden else ""
            mistakes.append(f"{path or 'file'}{variable}: {_advice(entry)}")
        raise InvalidSettings(source, mistakes) from None


def _read(file: Path) -> dict[str, Any]:
    try:
        content = file.read_bytes()
    except OSError as error:
        raise InvalidSettings(str(file), [f"cannot be read: {error.strerror or error}"]) from error
    if len(content) > MAX_BYTES:
        raise InvalidSettings(str(file), [f"has {len(content)} bytes; the maximum is {MAX_BYTES}"])
    try:
        document = yaml.safe_load(content)
    except yaml.YAMLError as error:
        raise InvalidSettings(str(file), [mistake(error)]) from None
    if not isinstance(document, dict) or (document.get("apiVersion"), document.get("kind")) != (API_VERSION, KIND):
        raise InvalidSettings(str(file), [f"must have apiVersion: {API_VERSION} and kind: {KIND}"])
    return document


def _override(document: dict[str, Any], environ: Mapping[str, str], older: Sequence[str]) -> dict[str, str]:
    """Put variables and flags into the document; returns the source of each field. Ignores unknown variables."""
    origin: dict[str, str] = {}

    def put(path: Sequence[str], value: Any, name: str) -> None:
        at = document
        for part in path[:-1]:
            at = at.setdefault(part, {}) if isinstance(at.get(part, {}), dict) else {}
        at[path[-1]] = value
        origin[".".join(path)] = name

    for name in older:
        for setting in OLDER_NAMES[name]:
            put(setting.split("."), environ[name], name)
    for variable, value in sorted(environ.items()):
        if variable.startswith(PREFIX) and (resolved := _resolve(variable.removeprefix(PREFIX).split("__"))):
            path, is_list = resolved
            put(path, _value(value, is_list), variable)
    return origin


def _resolve(parts: list[str]) -> tuple[list[str], bool] | None:
    """`["PLATFORM", "NATS", "SERVERS"]` -> names of the fields in the file, and whether the field is a list.

    None if there is no such field.
    """
    model: type[BaseModel] | None = OperatorConfiguration
    path: list[str] = []
    is_list = False
    for part in parts:
        if model is None:
            return None
        plain = re.sub(r"[^a-z0-9]", "", part.lower())
        known = next((name for name in model.model_fields if name.replace("_", "") == plain), None)
        if known is None:
            return None
        field = model.model_fields[known]
        path.append(field.alias or known)
        annotation = field.annotation
        is_list = get_origin(annotation) is tuple
        model = annotation if isinstance(annotation, type) and issubclass(annotation, BaseModel) else None
    return (path, is_list) if model is None else None


def _value(text: str, is_list: bool) -> Any:
    """Parse lists and maps as JSON, and lists also as comma separated; the field's type parses everything else."""
    if text.startswith(("[", "{")):
        try:
            return json.loads(text)
        except json.JSONDecodeError:
            return text
    return [part.strip() for part in text.split(",") if part.strip()] if is_list else text


def _advice(entry: Any) -> str:
    message = str(entry["msg"]).removeprefix("Value error, ")
    if entry["type"] == "extra_forbidden":
        return "unknown setting; docs/reference/configuration.md lists all settings"
    secret = entry["loc"] and str(entry["loc"][-1]).lower() in {"password", "token"}
    shown = not secret and isinstance(entry["input"], str | int | float | bool)
    return f"{message}, got {_USERINFO.sub('***@', repr(entry['input']))}" if shown else message
