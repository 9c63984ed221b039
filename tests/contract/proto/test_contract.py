"""The three forms of the wire contract agree on the golden messages: .proto, JSON Schema, and msgspec Structs."""

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import jsonschema
import msgspec
import pytest
import referencing
import yaml
from dynamo_shared.bus import streams
from dynamo_shared.state.messages import SyncedMarker
from dynamo_shared.wire import cloudevents, subjects
from dynamo_shared.wire.specifications import BY_TYPE
from dynamo_shared.wire.specifications.deployment import DeploymentData
from google.protobuf import json_format
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message as ProtoMessage
from grpc_tools import protoc  # type: ignore[import-untyped]

from tools.generate.wire import schemas
from tools.generate.wire.sample_data import DATA
from tools.generate.wire.samples import golden

ROOT = Path(__file__).resolve().parents[3]
PROTO = ROOT / "proto"
GOLDEN = sorted(PROTO.glob("golden/*.json"))
CLOUD_EVENTS = [path for path in GOLDEN if not path.name.startswith("state.")]
STRUCTS: list[type[msgspec.Struct]] = [*DATA, SyncedMarker]


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> list[ModuleType]:
    """The .proto files, compiled now, so that the test uses the committed files."""
    out = tmp_path_factory.mktemp("proto")
    files = [str(path.relative_to(PROTO)) for path in sorted(PROTO.rglob("*.proto"))]
    well_known = str(Path(protoc.__file__).parent / "_proto")
    assert protoc.main(["protoc", f"-I{PROTO}", f"-I{well_known}", f"--python_out={out}", *files]) == 0
    return [load(out / file.replace(".proto", "_pb2.py")) for file in files]


@pytest.fixture(scope="module")
def messages(modules: list[ModuleType]) -> dict[str, type[ProtoMessage]]:
    """Every message of the .proto files."""
    return {name: getattr(module, name) for module in modules for name in module.DESCRIPTOR.message_types_by_name}


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"contract_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def registry() -> referencing.Registry[Any]:
    resources = [(schema["$id"], referencing.Resource.from_contents(schema)) for schema in schemas.schemas().values()]
    return referencing.Registry().with_resources(resources)


def payload(path: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(path.read_text())["payload"]
    return document


def pruned(value: Any) -> Any:
    """The value without members that have their default: proto3 JSON leaves them out, msgspec writes some of them."""
    if isinstance(value, dict):
        members = {name: pruned(member) for name, member in value.items()}
        return {name: member for name, member in members.items() if member not in ("", "0", 0, [], {})}
    return [pruned(member) for member in value] if isinstance(value, list) else value


def test_all_files_are_one_go_package(modules: list[ModuleType]) -> None:
    """protoc-gen-go refuses files without a package. The path is a name: it leads to no module."""
    named = {module.DESCRIPTOR.name: module.DESCRIPTOR.GetOptions().go_package for module in modules}
    assert set(named.values()) == {"schemas.dynamo.nvidia.com/platform/v1;platformv1"}, named


def test_every_message_has_a_golden_file() -> None:
    assert {path.stem for path in GOLDEN} == set(golden())
    assert {payload(path)["type"] for path in CLOUD_EVENTS} == set(BY_TYPE)


@pytest.mark.parametrize("path", CLOUD_EVENTS, ids=lambda path: path.stem)
def test_golden_messages_pass_through_protobuf_unchanged(path: Path, messages: dict[str, type[ProtoMessage]]) -> None:
    event = payload(path)
    name = BY_TYPE[event["type"]].data.__name__
    data = json_format.ParseDict(event["data"], messages[name]())
    again = json_format.MessageToDict(data)
    assert pruned(again) == pruned(event["data"])
    envelope = json_format.ParseDict(event, messages["CloudEvent"]())
    assert pruned(json_format.MessageToDict(envelope, preserving_proto_field_name=True)) == pruned(event)


@pytest.mark.parametrize("path", CLOUD_EVENTS, ids=lambda path: path.stem)
def test_structs_read_what_protobuf_writes(path: Path, messages: dict[str, type[ProtoMessage]]) -> None:
    """A program in another language omits defaults; the message must stay the same."""
    event = payload(path)
    struct = BY_TYPE[event["type"]].data
    written = json_format.MessageToDict(json_format.ParseDict(event["data"], messages[struct.__name__]()))
    assert msgspec.convert(written, struct) == msgspec.convert(event["data"], struct)


@pytest.mark.parametrize("path", CLOUD_EVENTS, ids=lambda path: path.stem)
def test_golden_messages_pass_through_the_structs_unchanged(path: Path) -> None:
    event = payload(path)
    read = cloudevents.decode(json.dumps(event).encode())
    assert json.loads(cloudevents.encode(read)) == event
    struct = BY_TYPE[read.type].data
    assert msgspec.to_builtins(msgspec.convert(read.data, struct)) == event["data"]


@pytest.mark.parametrize("path", CLOUD_EVENTS, ids=lambda path: path.stem)
def test_golden_messages_fit_their_schemas(path: Path, registry: referencing.Registry[Any]) -> None:
    event = payload(path)
    everything = schemas.schemas()
    for schema, instance in (
        (everything["cloudevent"], event),
        (everything[schemas.file_name(BY_TYPE[event["type"]])], event["data"]),
    ):
        jsonschema.Draft202012Validator.check_schema(schema)
        jsonschema.Draft202012Validator(schema, registry=registry).validate(instance)
    assert event["dataschema"] == everything[schemas.file_name(BY_TYPE[event["type"]])]["$id"]


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_golden_subjects_belong_to_a_stream_and_headers_repeat_the_payload(path: Path) -> None:
    message = json.loads(path.read_text())
    assert message["subject"].startswith((subjects.STATE_PREFIX, subjects.EVENT_PREFIX, subjects.COMMAND_PREFIX))
    if path in CLOUD_EVENTS:
        event, headers = message["payload"], message["headers"]
        assert headers["Nats-Msg-Id"] == headers["ce-id"] == event["id"]
        assert (headers["ce-type"], headers["ce-source"]) == (event["type"], event["source"])


@pytest.mark.parametrize("struct", STRUCTS, ids=lambda struct: struct.__name__)
def test_structs_and_proto_have_the_same_fields_of_the_same_types(
    struct: type[msgspec.Struct], messages: dict[str, type[ProtoMessage]]
) -> None:
    compare(msgspec.json.schema(struct), struct.__name__, messages)


def compare(schema: dict[str, Any], name: str, messages: dict[str, type[ProtoMessage]]) -> None:
    definitions = schema["$defs"]
    for definition, content in definitions.items():
        fields = {field.json_name: field for field in messages[definition].DESCRIPTOR.fields}
        assert set(content["properties"]) == set(fields), definition
        for member, described in content["properties"].items():
            assert kind_of_schema(described) == kind_of_field(fields[member]), f"{definition}.{member}"
    assert name in definitions


def kind_of_schema(described: dict[str, Any]) -> str:
    if "$ref" in described:
        return str(described["$ref"]).rpartition("/")[2]
    if described["type"] == "string":
        return "int64" if "pattern" in described else "string"
    if described["type"] in ("integer", "boolean", "number"):
        return {"integer": "int32", "boolean": "bool", "number": "double"}[described["type"]]
    if described["type"] == "array":
        return f"repeated {kind_of_schema(described['items'])}"
    return f"map of {kind_of_schema(described['additionalProperties'])}"


def kind_of_field(field: Any) -> str:
    kinds = {
        FieldDescriptor.TYPE_STRING: "string",
        FieldDescriptor.TYPE_INT64: "int64",
        FieldDescriptor.TYPE_INT32: "int32",
        FieldDescriptor.TYPE_BOOL: "bool",
        FieldDescriptor.TYPE_DOUBLE: "double",
    }
    message = field.message_type
    if message is not None and message.GetOptions().map_entry:
        return f"map of {kind_of_field(message.fields_by_name['value'])}"
    kind = kinds.get(field.type) or message.name
    return f"repeated {kind}" if field.is_repeated else str(kind)


def test_the_envelope_has_the_same_attributes(messages: dict[str, type[ProtoMessage]]) -> None:
    own = {field.encode_name for field in msgspec.structs.fields(cloudevents.Event)}
    assert {field.name for field in messages["CloudEvent"].DESCRIPTOR.fields} == own
    # CloudEvents allows only lower-case letters and digits in attribute names.
    assert all(name.isalnum() and name.islower() for name in own)


def test_unknown_fields_are_ignored() -> None:
    """A newer platform may add fields: an older reader must accept them."""
    event = payload(PROTO / "golden" / "deployment.ready.json")
    event["newattribute"] = "x"
    event["data"]["newField"] = {"deep": 1}
    read = cloudevents.decode(json.dumps(event).encode())
    assert msgspec.convert(read.data, DeploymentData).name == "llama-3.1"


def test_large_integers_keep_their_value() -> None:
    event = payload(PROTO / "golden" / "deployment.ready.json")
    assert event["data"]["generation"] == "9007199254740993"


def test_the_asyncapi_document_is_complete_and_its_references_resolve() -> None:
    document = yaml.load((PROTO / "asyncapi.yaml").read_text(), yaml.CSafeLoader)
    assert document["asyncapi"] == "3.0.0"
    names = {channel["x-jetstream"]["stream"] for channel in document["channels"].values()}
    assert names == {spec.name for spec in streams.ALL}
    for reference in references(document):
        if reference.startswith("#/"):
            target: Any = document
            for part in reference[2:].split("/"):
                target = target[part]
        else:
            assert (PROTO / reference).is_file(), reference
    for operation in document["operations"].values():
        assert operation["action"] in ("send", "receive")
    assert document["servers"]["nats"]["x-inbox-prefix"] == "_INBOX_integrator"
    assert document["components"]["securitySchemes"]["user"]["type"] == "userPassword"


def test_every_field_of_the_data_has_a_description() -> None:
    everything = schemas.schemas()
    data = [everything[schemas.file_name(spec)] for spec in BY_TYPE.values()]
    parts = [part for schema in data for part in (schema, *schema.get("$defs", {}).values())]
    assert not {name for part in parts for name, field in part["properties"].items() if not field.get("description")}


def references(value: Any) -> list[str]:
    if isinstance(value, dict):
        own = [value["$ref"]] if "$ref" in value else []
        return own + [each for member in value.values() for each in references(member)]
    return [each for member in value for each in references(member)] if isinstance(value, list) else []


def test_every_address_is_a_subject_that_parses() -> None:
    document = yaml.load((PROTO / "asyncapi.yaml").read_text(), yaml.CSafeLoader)
    parsers = {
        subjects.STATE_PREFIX: lambda subject: subjects.parse_synced(subject) or subjects.parse_state(subject),
        subjects.EVENT_PREFIX: subjects.parse_event,
        subjects.COMMAND_PREFIX: subjects.parse_command,
        subjects.DEAD_LETTER_PREFIX: subjects.parse_command,
    }
    for channel in document["channels"].values():
        subject = channel["address"].replace("{", "").replace("}", "")
        prefix = ".".join(subject.split(".")[:3])
        assert parsers[prefix](subject)
