"""A worker process that is tuned reads what AI Configurator ships as it is read otherwise."""

import gc
from collections.abc import Iterator
from pathlib import Path

import aiconfigurator_core
import pandas
import pytest
import yaml
from dynamo_profiler.profiling.simulation.speedup import tune

SYSTEMS = Path(aiconfigurator_core.__file__).with_name("systems")


@pytest.fixture
def untuned(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What is tuned is a whole process, which has other tests, too."""
    monkeypatch.setattr(yaml, "SafeLoader", yaml.SafeLoader)
    thresholds = gc.get_threshold()
    with pandas.option_context("future.infer_string", True):
        yield
    gc.set_threshold(*thresholds)


@pytest.mark.filterwarnings("ignore:The 'future.infer_string' option")
@pytest.mark.parametrize("system", ["h200_sxm", "l40s"])
def test_files_and_frames_have_the_same_values(system: str, untuned: None) -> None:
    text = (SYSTEMS / f"{system}.yaml").read_text()
    rows = [{"backend": "vllm", "tp": 2}, {"backend": "sglang", "tp": 4}]
    read, frame = yaml.safe_load(text), pandas.DataFrame(rows)
    tune()
    assert yaml.safe_load(text) == read
    assert yaml.load(text, Loader=yaml.SafeLoader) == read
    assert pandas.DataFrame(rows).sort_values("tp").to_dict("records") == frame.to_dict("records")
