"""One meaning a class name: what counts as a duplicate."""

import pytest

from tools import class_names

STATE = "class State:\n    pass\n"


@pytest.mark.parametrize(
    ("sources", "names"),
    [
        ({"a.py": STATE, "b.py": "class Other:\n    pass\n"}, []),
        ({"a.py": STATE, "b.py": STATE}, ["State"]),
        ({"a.py": STATE + STATE}, ["State"]),
        ({"a.py": "def f():\n    class State: ...\n", "b.py": STATE}, ["State"]),
        ({"api/v1alpha1/a.py": STATE, "api/v1beta1/b.py": STATE}, []),
        ({"api/v1alpha1/a.py": STATE, "api/v1beta1/b.py": STATE, "c.py": STATE}, ["State"]),
        ({"api/v1beta1/a.py": STATE, "api/v1beta1/b.py": STATE}, ["State"]),
        ({"a.py": "class Mode: ...\n", "b.py": "class Mode: ...\n"}, []),
    ],
)
def test_a_name_of_two_classes_is_reported_unless_versions_or_documents_have_it(
    sources: dict[str, str], names: list[str]
) -> None:
    assert list(class_names.duplicates(sources)) == names
