"""What an image's bill of materials is made from, and what its base is called."""

from pathlib import Path

import pytest

from tools.images.base import stand_in_name
from tools.images.sbom import locked

REQUIREMENTS = Path(__file__).parents[3] / "requirements"


def test_an_entry_of_the_lock_has_its_version_marker_and_hashes() -> None:
    text = (
        f"anyio==4.16.0 ; sys_platform != 'emscripten' \\\n    --hash=sha256:{'a' * 64} \\\n    --hash=sha256:{'b' * 64}\n"
        f"msgspec[yaml]==0.20.0 \\\n    --hash=sha256:{'c' * 64}\n"
    )
    anyio, msgspec = locked(text)
    assert (anyio.name, anyio.version, anyio.marker) == ("anyio", "4.16.0", "sys_platform != 'emscripten'")
    assert anyio.hashes == ("a" * 64, "b" * 64)
    assert (msgspec.name, msgspec.version, msgspec.marker, msgspec.hashes) == ("msgspec", "0.20.0", "", ("c" * 64,))


@pytest.mark.parametrize("name", ["runtime", "planner"])
def test_every_locked_package_is_in_the_sbom(name: str) -> None:
    text = (REQUIREMENTS / f"{name}.txt").read_text()
    entries = list(locked(text))
    assert len(entries) == sum("==" in line and not line.startswith(" ") for line in text.splitlines())
    assert all(entry.hashes for entry in entries)


@pytest.mark.parametrize(
    ("base", "expected"),
    [
        ("docker.io/library/python:3.13-slim-trixie", "localhost/python:3.13-slim-trixie"),
        ("registry.example.com:5000/mirror/python:3.13@sha256:" + "0" * 64, "localhost/python:3.13"),
    ],
)
def test_a_locally_built_base_is_not_labelled_as_the_official_image(base: str, expected: str) -> None:
    assert stand_in_name(base) == expected
