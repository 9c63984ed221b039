"""Command lines are parsed in every common form, and flags are added where the engine reads them."""

import subprocess
import time

import pytest
from dynamo_pod_builder.render import RenderError
from dynamo_pod_builder.render.backends import commandline

FLAGS = ["--nnodes", "2"]


def container(command, args=()):
    return {"command": list(command), "args": list(args)}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (container(["python3", "-m", "dynamo.vllm"], ["--tensor-parallel-size", "8"]), 8),
        (container(["python3", "-m", "dynamo.vllm", "--tensor-parallel-size", "8"]), 8),
        (container(["python3", "-m", "dynamo.vllm"], ["--tensor-parallel-size=8"]), 8),
        (container(["python3", "-m", "dynamo.vllm"], ["-tp", "8"]), 8),
        (container(["python3", "-m", "dynamo.vllm"], ["-tp=8"]), 8),
        (container(["python3", "-m", "dynamo.vllm"], ["--tensor-parallel-size 8"]), 8),
        (container(["/usr/bin/python3.12", "-m", "dynamo.vllm"], ["-tp", "2", "-tp", "4"]), 4),
        (container(["/bin/sh", "-c"], ["python3 -m dynamo.vllm --tensor-parallel-size 8"]), 8),
        (container(["bash", "-lc", "cd /x && python3 -m dynamo.vllm -tp=8 | tee log"]), 8),
        (container(["sh"], ["-c", "exec python3 -m dynamo.vllm --tensor-parallel-size '8'"]), 8),
        (container(["sh", "-c"], ["# don't stop\npython3 -m dynamo.vllm -tp 8 # can't be -tp 2\n# it's all"]), 8),
        (container(["sh", "-c"], ["python3 -m dynamo.vllm --x 'a #' -tp 8 --y b#c"]), 8),
        (container(["sh", "-c"], ["bash -c 'exec python3 -m dynamo.vllm -tp 8 --model \"a b\"'"]), 8),
        (container(["sh", "-c"], ["'python3\u00a0-m\u00a0dynamo.vllm' -tp 8"]), 8),
        (container(["sh", "-c"], ["python3\u00a0-m\u00a0dynamo.vllm"]), 1),
        (container(["python3", "-m", "dynamo.vllm"], ["--tensor-parallel-size", "$(TP)"]), 1),
        (container(["python3", "-m", "dynamo.vllm"], ["--tensor-parallel-size"]), 1),
        (container(["python3", "-m", "dynamo.vllm"], ["--tensor-parallel-size", "0"]), 1),
        (container(["python3", "-m", "dynamo.vllm"], ["--tensor-parallel-size", "9" * 5000]), 1),
        (container(["python3", "-m", "dynamo.vllm"]), 1),
    ],
)
def test_the_flag_that_counts(line, expected) -> None:
    assert commandline.read("Worker", line).number("--tensor-parallel-size", "-tp") == expected


MODULE = ["python3", "-m", "dynamo.vllm"]


def test_flags_are_appended_if_no_shell_parses_them() -> None:
    line = container(MODULE, ["--model", "x"])
    assert commandline.read("Worker", line).with_flags(FLAGS, "vllm") == (MODULE, ["--model", "x", *FLAGS])


@pytest.mark.parametrize(
    ("command", "args"),
    [
        (["/bin/sh", "-c"], ["python3 -m dynamo.vllm@ --model x"]),
        (["bash", "-c", "set -e; python3 -u -m dynamo.vllm@ --model x | tee log"], []),
        (["sh"], ["-c", "python3 -m dynamo.vllm@"]),
        (["sh", "-c"], ["bash -c 'python3 -m dynamo.vllm@'"]),
        (["sh", "-c"], ["python3 -m 'dynamo.vllm'@ --model x"]),
        (["sh", "-c"], [r'bash -c "python3 -m \"dynamo.vllm\"@"']),
        (["bash", "-c"], ["# was: cd /x; {0} -v\necho {0}\nexec {0}@".format("python3 -m dynamo.vllm")]),
        (["bash", "-c", "--"], ["python3 -m dynamo.vllm@ --model x"]),
        (["bash", "-c"], ["echo 'run # 1' ; exec python3 -m dynamo.vllm@ # python3 -m dynamo.vllm"]),
        (["bash", "-c"], ["exec python3 \\\n  -m dynamo.vllm@ \\\n  --model x"]),
        (["bash", "-c"], ["python3 -m dynamo.vllm@\\\n  --model x"]),
        # If everything seems to be a comment, the quotes were misread, and the first one is the comment.
        (["bash", "-c"], ['eval " # exec python3 -m dynamo.vllm@"']),
    ],
)
def test_flags_are_inserted_where_the_engine_reads_them(command, args) -> None:
    """The marker shows the place."""

    def with_(flags: str) -> list[list[str]]:
        return [[each.replace("@", flags) for each in words] for words in (command, args)]

    line = container(*with_(""))
    assert list(commandline.read("Worker", line).with_flags(FLAGS, "vllm")) == with_(" --nnodes 2")


def test_arithmetic_needs_a_shell() -> None:
    line = commandline.read("Worker", container(["python3", "-m", "dynamo.vllm"], ["--x", '{"a": 1}']))
    command, (script,) = line.with_flags(["--node-rank", "$((INDEX + 1))"], "vllm", shell=True)
    assert command == ["sh", "-c"]
    assert script == 'exec python3 -m dynamo.vllm --x "{\\"a\\": 1}" --node-rank $((INDEX + 1))'


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (container(["vllm", "serve"], ["model"]), "starts 'vllm', to which"),
        (container(["/entrypoint.sh"], []), "starts '/entrypoint.sh', to which"),
        (container(["/bin/sh", "-c"]), "starts a shell without a script, to which"),
        (container(["bash", "start.sh"]), "starts 'bash', to which"),
    ],
)
def test_a_command_that_cannot_get_flags_is_rejected(line, message) -> None:
    with pytest.raises(RenderError, match=message):
        commandline.read("Worker", line)


@pytest.mark.parametrize("script", ["./start.sh", "python3 -m dynamo.sglang", "echo python3; vllm serve x"])
def test_a_script_that_starts_another_program_is_rejected(script) -> None:
    line = commandline.read("Worker", container(["sh", "-c"], [script]))
    with pytest.raises(RenderError, match=r"does not start `python3 -m dynamo\.vllm` itself"):
        line.with_flags(FLAGS, "vllm")


def test_a_shell_reads_a_quoted_word_as_the_same_word() -> None:
    pieces = [
        "a",
        " ",
        "'",
        '"',
        "\\",
        "$",
        "`",
        "$HOME",
        "$(id)",
        "!",
        "*",
        "?",
        "~",
        "#",
        ";",
        "&",
        "|",
        "(",
        "<",
        "\n",
        "é",
        "{a,b}",
    ]
    words = [*pieces, *(first + second for first in pieces for second in pieces), ""]
    # A word that has the form of a Kubernetes variable loses it when a shell reads it.
    words = [word for word in words if "$(id)" not in word]
    script = f"printf '%s\\0' {' '.join(commandline.quote(word) for word in words)}"
    output = subprocess.run(["/bin/sh", "-c", script], capture_output=True, check=True, timeout=30).stdout
    assert output.decode().split("\0")[:-1] == words


def test_a_shell_expands_the_value_of_a_variable_once() -> None:
    values = {"SETTINGS": '{"a": "$b`c`"}', "MODEL": "org/model", "my.settings": '{"a": 1}'}
    line = {**container(MODULE, ["--x", "$(SETTINGS)", "$(MODEL) $(my.settings)"]), "env": []}
    line["env"] = [{"name": name, "value": value} for name, value in values.items()]
    _, (script,) = commandline.read("Worker", line).with_flags(["--rank", "$((1 + 1))"], "vllm", shell=True)
    assert script == 'exec python3 -m dynamo.vllm --x "${SETTINGS}" "$(MODEL) $(my.settings)" --rank $((1 + 1))'
    printed = script.replace("$(MODEL) $(my.settings)", "").replace("exec python3", "printf '%s\\0'")
    output = subprocess.run(["/bin/sh", "-c", printed], env=values, capture_output=True, check=True, timeout=30).stdout
    assert output.decode().split("\0")[2:4] == ["--x", values["SETTINGS"]]


@pytest.mark.parametrize(
    ("variable", "read"),
    [
        ({"value": "org/model $(POD_IP)"}, "$(X)"),
        ({"value": "it's"}, "${X}"),
        ({"value": "$(JSON)"}, "${X}"),
        ({"valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}, "${X}"),
        ({"valueFrom": {"configMapKeyRef": {"name": "s", "key": "k"}}}, "${X}"),
        ({"valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}, "$(X)"),
    ],
)
def test_a_shell_reads_a_variable_whose_value_it_could_change(variable, read) -> None:
    """Kubernetes puts the value of `$(X)` into the text that the shell reads."""
    line = {**container(MODULE, ["$(X)"]), "env": []}
    line["env"] = [{"name": "JSON", "value": '{"a": 1}'}, {"name": "X", **variable}]
    assert commandline.read("Worker", line).as_script() == f'python3 -m dynamo.vllm "{read}"'


def test_variables_of_kubernetes_are_not_quoted() -> None:
    assert commandline.quote("tcp://$(POD_IP):5555 $HOME") == '"tcp://$(POD_IP):5555 \\$HOME"'


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (container(["python3", "-m", "dynamo.vllm", "--port", "1"], ["--port", "2"]), "--port 101 --port 102"),
        (container(["python3", "-m", "dynamo.vllm"], ["--port=1", "--x", "1"]), "--port=101 --x 1"),
        (
            container(["sh", "-c"], ["python3 -m dynamo.vllm --port 1 --portal 1 | tee 1"]),
            "--port 101 --portal 1 | tee 1",
        ),
        (container(["python3", "-m", "dynamo.vllm"], ["--port", "$(PORT)"]), None),
        (container(["python3", "-m", "dynamo.vllm"], ["--a-port", "1"]), None),
        (container(["python3", "-m", "dynamo.vllm"], ["--port"]), None),
        (container(["python3", "-m", "dynamo.vllm"], ["--port", "9" * 5000, f"--port={'9' * 5000}"]), None),
    ],
)
def test_the_number_of_a_flag_raised(line, expected) -> None:
    result = commandline.read("Worker", line).raised("--port", 100)
    if result is None:
        assert expected is None
    else:
        assert " ".join([*result[0], *result[1]]).endswith(f"dynamo.vllm {expected}")


@pytest.mark.parametrize(
    "script",
    [
        "python -m x " * 80_000,
        "python " * 100_000,
        f"echo '{'x' * 900_000}' && python -m x",
        "# ;" * 300_000,
        "'" * 900_000,
        "echo \n" * 160_000,
        "# python -m dynamo.vll\n" * 40_000,
    ],
    ids=lambda _: "",
)
def test_a_script_of_a_megabyte_is_parsed_quickly(script: str) -> None:
    line = commandline.read("Worker", container(["sh", "-c"], [script]))
    began = time.process_time()
    assert line.number("-tp") == 1
    with pytest.raises(RenderError, match="does not start"):
        line.with_flags(FLAGS, "vllm")
    assert time.process_time() - began < 2
