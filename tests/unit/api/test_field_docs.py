import inspect
from typing import Any

import pytest
from dynamo_shared.api.contracts.base import CamelContractModel
from dynamo_shared.api.model import ApiModel
from pydantic import Field, create_model


class Base(ApiModel):
    own_name: int = 0
    """Its name on the wire differs."""

    redeclared: int = 0
    """Of the base."""

    explicit: int = Field(0, description="Given.")
    """Not used."""

    plain: int = 0

    class Inner(ApiModel):
        deep: int = 0
        """Over
        two lines."""


class Derived(Base):
    redeclared: int = 1

    inner: Base.Inner = Base.Inner()
    """A reference."""


class Contract(CamelContractModel):
    older_too: int = 0
    """Described once."""


def described(model: type[Any]) -> dict[str, str | None]:
    return {name: each.get("description") for name, each in model.model_json_schema()["properties"].items()}


def test_docstrings_of_fields_are_the_descriptions_in_the_schema() -> None:
    of_base = {"ownName": "Its name on the wire differs.", "explicit": "Given.", "plain": None}
    assert described(Base) == {**of_base, "redeclared": "Of the base."}
    assert described(Derived) == {**of_base, "redeclared": None, "inner": "A reference."}
    assert described(Base.Inner) == {"deep": "Over\ntwo lines."}
    assert described(create_model("Made", __base__=Base, plain=(str, ""))) == described(Base)
    assert described(Contract) == {"olderToo": "Described once.", "older_too": None}


def test_no_source_is_read_when_a_class_is_created(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("findsource", "getsource", "getmodule"):
        monkeypatch.setattr(inspect, name, lambda *_: pytest.fail("this takes a fifth of the start of each process"))

    class Created(ApiModel):
        field: int = 0
        """Read later."""

    assert Created().field == 0
