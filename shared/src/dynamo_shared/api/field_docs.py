"""Docstrings of fields as descriptions in JSON Schemas, read from the source only when a schema is generated.

Pydantic's `use_attribute_docstrings` reads the source of each class when the class is created. That takes a fifth of the
start of a process, and few processes generate schemas.
"""

import ast
import inspect
import sys
from collections.abc import Iterator
from functools import cache
from typing import Any

from pydantic import AliasChoices, BaseModel

Docs = dict[str, str]


def describe(model: type[BaseModel], properties: dict[str, Any]) -> None:
    """Add the docstrings of a model's fields to the properties of its schema, unless a field has a description."""
    for name, field in model.model_fields.items():
        alias = field.validation_alias
        key = alias.choices[0] if isinstance(alias, AliasChoices) else alias
        described = properties.get(key if isinstance(key, str) else name)
        if described is not None and field.description is None and (text := _of_field(model, name)):
            described["description"] = text


def _of_field(model: type[BaseModel], name: str) -> str:
    """The docstring of a field, at the class that declares the field; empty if it has none."""
    declaring = (each for each in model.__mro__ if name in inspect.get_annotations(each))
    return next((_of_module(each.__module__).get(each.__qualname__, {}).get(name, "") for each in declaring), "")


@cache
def _of_module(name: str) -> dict[str, Docs]:
    """The docstrings of attributes in a module, by class; empty if its source is not available."""
    try:
        source = inspect.getsource(sys.modules[name])
    except OSError:
        return {}
    return dict(_of_classes(ast.parse(source), ""))


def _of_classes(parent: ast.AST, prefix: str) -> Iterator[tuple[str, Docs]]:
    for node in ast.iter_child_nodes(parent):
        if isinstance(node, ast.ClassDef):
            qualified = f"{prefix}{node.name}"
            yield qualified, dict(_of_attributes(node))
            yield from _of_classes(node, f"{qualified}.")
        elif isinstance(node, ast.FunctionDef):
            yield from _of_classes(node, f"{prefix}{node.name}.<locals>.")


def _of_attributes(declared: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for attribute, after in zip(declared.body, declared.body[1:], strict=False):
        match attribute, after:
            case (ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text)))):
                yield name, inspect.cleandoc(text)
