"""Steps of `make setup` say what they do, before any package of this project is installed."""

import subprocess
import sys
from pathlib import Path

import pytest

from tools import step
from tools.step import ROOT, StepFailedError, run


def test_a_step_needs_only_python_itself() -> None:
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import runpy, sys; sys.path.insert(0, {str(ROOT)!r}); sys.argv[1:] = "
         "['greeting', sys.executable, '-c', 'print(1)']; runpy.run_module('tools.step', run_name='__main__')"],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert done.stdout == "1\n"
    first, last = done.stderr.splitlines()
    assert first == "greeting ..."
    assert last.startswith("greeting: done in ")


def test_installed_packages_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pins = tmp_path / "pins.txt"
    pins.write_text("a==1 \\\n    --hash=sha256:x\nb==2\n")
    (tmp_path / "lib/python3/site-packages/a-1.dist-info").mkdir(parents=True)
    (tmp_path / "lib/python3/site-packages/a").mkdir()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/true").symlink_to("/bin/true")
    reporting, ends = step._reporting(), iter([None, 0])
    monkeypatch.setattr(reporting, "LineProgress", lambda of=reporting.LineProgress: of(every=0))
    monkeypatch.setattr(step, "_reporting", lambda: reporting)
    monkeypatch.setattr(step, "_ended", lambda _: next(ends))
    run("installing", [str(tmp_path / "bin/true")], pins)
    assert "installing: packages installed, of at most 1/2, 0 s" in capsys.readouterr().err


def test_a_failed_step_keeps_its_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(StepFailedError) as failed:
        run("installing", [sys.executable, "-c", "raise SystemExit(7)"])
    assert failed.value.code == 7
    assert capsys.readouterr().err == "installing ...\n"
