"""The work of `dynamoctl get`: reads graphs and components."""

from dataclasses import replace

from dynamo_shared.api.objects import KubeObject, without_managed_fields

from dynamo_ctl.commands.get import ObjectQuery
from dynamo_ctl.commands.get.sources import RESOURCES, ObjectSource
from dynamo_ctl.commands.parameters import Output
from dynamo_ctl.errors import CtlError, ExitCode
from dynamo_ctl.kinds import short_name
from dynamo_ctl.output import Print, age, columns, echo_error, encoded, object_list, one_line, padded
from dynamo_ctl.summary import component_line, graph_line

ALL = "all"
HEADERS = {
    "dgd": ("NAME", "BACKEND", "STATE", "READY", "AGE", "MESSAGE"),
    "dcd": ("NAME", "COMPONENT", "TYPE", "READY", "AVAILABLE", "AGE", "MESSAGE"),
}


def resolved(query: ObjectQuery) -> ObjectQuery:
    """The query with the short name of its kind, and the name from `KIND/NAME`. Raises CtlError for an unknown kind."""
    written, slash, name = query.what.partition("/")
    what = short_name(written)
    if what not in (*RESOURCES, ALL):
        raise CtlError(
            f"{written}: get shows {', '.join(RESOURCES)} or {ALL}; kubectl get shows other kinds", ExitCode.USAGE
        )
    if slash and (query.name or not name):
        raise CtlError(f"{query.what}: write KIND NAME or KIND/NAME", ExitCode.USAGE)
    return replace(query, what=what, name=query.name or name or None)


def kinds(query: ObjectQuery) -> list[str]:
    """Short names of the requested resources."""
    return list(RESOURCES) if query.what == ALL else [query.what]


async def show(query: ObjectQuery, source: ObjectSource, out: Print) -> None:
    """Print the current objects. Raises CtlError if a named object does not exist."""
    namespace = _namespace(source, query)
    objects_of = {kind: await _read(source, kind, query) for kind in kinds(query)}
    if query.name and not any(objects_of.values()):
        raise CtlError(
            f"no {' or '.join(kinds(query))} {query.name!r} in {namespace or 'any namespace'}; see dynamoctl get -A"
        )
    if query.output is not Output.TABLE:
        objects = [without_managed_fields(obj) for objects in objects_of.values() for obj in objects]
        out(encoded(objects[0] if query.name and len(objects) == 1 else object_list(objects), query.output))
        return
    tables = [(kind, objects) for kind, objects in objects_of.items() if objects]
    if not tables:
        echo_error(f"nothing in namespace {namespace}; -A shows all" if namespace else "nothing in any namespace")
    for number, (kind, objects) in enumerate(tables):
        if number:
            out("")
        for line in columns(*_table_cells(kind, objects, query)):
            out(line)


async def watch(query: ObjectQuery, source: ObjectSource, out: Print) -> None:
    """Print the current objects, then a line (or an object) for each change, until cancelled."""
    namespace = _namespace(source, query)
    widths = {kind: await _widths(source, kind, query) for kind in kinds(query)}
    titled: set[str] = set()
    async for kind, obj, deleted in source.changes(kinds(query), namespace):
        if query.name and obj["metadata"]["name"] != query.name:
            continue
        if query.output is not Output.TABLE:
            out(encoded(without_managed_fields(obj), query.output, stream=True))
            continue
        header, row = _table_cells(kind, [obj], query)
        if deleted:
            row[0][header.index("STATE" if "STATE" in header else "AVAILABLE")] = "deleted"
        widths[kind] = [max(width, len(cell)) for width, cell in zip(widths[kind], row[0], strict=True)]
        if kind not in titled:
            titled.add(kind)
            out(padded(header, widths[kind]))
        out(padded(row[0], widths[kind]))


async def _widths(source: ObjectSource, kind: str, query: ObjectQuery) -> list[int]:
    """The widths of columns for the current objects; later rows may need more."""
    header, rows = _table_cells(kind, await _read(source, kind, query), query)
    return [max(map(len, cells)) for cells in zip(header, *rows, strict=True)]


def _namespace(source: ObjectSource, query: ObjectQuery) -> str:
    return "" if query.all_namespaces else query.namespace or source.namespace


async def _read(source: ObjectSource, kind: str, query: ObjectQuery) -> list[KubeObject]:
    objects_of = await source.read(kind, _namespace(source, query), query.name)
    if query.name:
        objects_of = [obj for obj in objects_of if obj["metadata"]["name"] == query.name]
    return sorted(objects_of, key=lambda obj: (obj["metadata"]["namespace"], obj["metadata"]["name"]))


def _table_cells(kind: str, objects: list[KubeObject], query: ObjectQuery) -> tuple[list[str], list[list[str]]]:
    header = list(HEADERS[kind])
    rows = [_graph_cells(obj) if kind == "dgd" else _component_cells(obj) for obj in objects]
    if query.all_namespaces:
        header.insert(0, "NAMESPACE")
        for row, obj in zip(rows, objects, strict=True):
            row.insert(0, obj["metadata"]["namespace"])
    return header, [list(map(one_line, row)) for row in rows]


def _graph_cells(obj: KubeObject) -> list[str]:
    line = graph_line(obj)
    return [line.name, line.backend, line.state, line.components, age(line.created), line.message]


def _component_cells(obj: KubeObject) -> list[str]:
    line = component_line(obj)
    return [line.name, line.component, line.type, line.replicas, line.available, age(line.created), line.message]
