"""How files of tests are dealt out to processes."""

import ast
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from xdist.remote import Producer

from tests.distribution import GROUPS, INTEGRATION, LONG, OWN_SERVERS, FromBothEnds, group_of, place

ROOT = Path(__file__).parents[3]
ROW = [
    "tests/integration/test_ctl.py",
    "tests/integration/test_adoption.py",
    "tests/integration/test_spine.py",
    "tests/charts/test_schema.py",
    "tests/integration/test_lora_api.py",
    "tests/integration/test_restarts.py",
    "tests/page/test_logic.py",
    "tests/unit/test_readers.py",
]


class Process:
    """What the scheduler sees of a process."""

    def __init__(self) -> None:
        self.gateway = SimpleNamespace(id="process")
        self.shutting_down = False
        self.given: list[int] = []

    def send_runtest_some(self, indices: list[int]) -> None:
        self.given += indices

    def shutdown(self) -> None:
        self.shutting_down = True


class Options:
    """What the scheduler asks pytest's configuration."""

    def __init__(self, processes: int) -> None:
        self._processes = processes
        self.option = SimpleNamespace(loadscopereorder=True)

    def getvalue(self, name: str) -> list[str]:
        return {"tx": [f"{self._processes}*popen"]}[name]


def dealt_out(processes: int, files: list[str]) -> list[list[str]]:
    """The files that each process gets, where all take equally long, in their order."""
    scheduler = FromBothEnds(cast("pytest.Config", Options(processes)), Producer("test", enabled=False))
    nodes: list[Any] = [Process() for _ in range(processes)]
    collection = [f"{file}::test_{number}" for file in files for number in range(3)]
    for node in nodes:
        scheduler.add_node(node)
        scheduler.add_node_collection(node, collection)
    scheduler.schedule()
    done = [0] * processes
    while any(done[number] < len(node.given) for number, node in enumerate(nodes)):
        for number, node in enumerate(nodes):
            if done[number] < len(node.given):
                done[number] += 1
                scheduler.mark_test_complete(node, node.given[done[number] - 1])
    assert sorted(index for node in nodes for index in node.given) == list(range(len(collection)))
    return [list(dict.fromkeys(collection[index].split("::")[0] for index in node.given)) for node in nodes]


def test_files_with_a_shared_control_plane_come_first_and_files_without_servers_last():
    assert sorted(sorted(ROW), key=place) == ROW


def test_the_last_worker_takes_files_from_the_end():
    first, second, last = dealt_out(3, sorted(ROW))
    assert (first[0], second[0]) == (ROW[0], ROW[1])
    assert last[:2] == [ROW[-1], ROW[-2]]


def test_two_of_four_workers_take_files_from_the_end():
    first, second, third, last = dealt_out(4, sorted(ROW))
    assert (first[0], second[0]) == (ROW[0], ROW[1])
    assert {third[0], last[0]} == {ROW[-1], ROW[-2]}


def test_one_worker_takes_all_files_in_order():
    assert dealt_out(1, sorted(ROW)) == [ROW]


@pytest.mark.parametrize("group", GROUPS)
def test_files_of_a_group_go_to_one_worker(group: tuple[str, ...]):
    results = dealt_out(3, [*group, *ROW])
    assert [set(group) & set(files) for files in results if set(group) & set(files)] == [set(group)]


def test_the_tables_name_existing_files():
    named = {*LONG, *(file for group in GROUPS for file in group), *(f"{INTEGRATION}/{name}" for name in OWN_SERVERS)}
    assert {file for file in named if not (ROOT / file).is_file()} == set()
    assert {file for file in LONG if group_of(file) != file} == set()


def fixtures_of(file: Path) -> tuple[set[str], set[str]]:
    """Fixtures that a file has, and those that its tests and fixtures ask for by name."""
    own, asked = set(), set()
    for each in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
            is_fixture = any("fixture" in ast.unparse(decorator) for decorator in each.decorator_list)
            own |= {each.name} if is_fixture else set()
            asked |= {argument.arg for argument in each.args.args} if is_fixture or each.name[:4] == "test" else set()
    return own, asked


def test_the_table_of_own_servers_lists_files_without_the_shared_control_plane():
    of_the_session = {"control_plane", "kube", "namespace"}
    results = set()
    for file in (ROOT / INTEGRATION).glob("test_*.py"):
        own, asked = fixtures_of(file)
        if not (of_the_session - own) & asked:
            results.add(file.name)
    assert results == OWN_SERVERS
