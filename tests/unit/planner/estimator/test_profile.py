"""Profiles: every form that Dynamo writes gives the same points; errors name the file and the key."""

import io
import json
from pathlib import Path

import numpy as np
import pytest
from dynamo_planner.core.profile import EngineGpus, Profile, ProfileError
from dynamo_planner.core.profile_arrays import from_arrays, from_json, from_npz
from dynamo_planner.profile_files import read_profile

PREFILL = {"prefill_isl": [100, 1000, 4000], "prefill_ttft": [10.0, 30.0, 110.0]}
DECODE = {"x_kv_usage": [0.1, 0.5], "y_context_length": [1000, 1000], "z_itl": [5.0, 9.0], "max_kv_tokens": [100_000]}


def npz(**arrays: object) -> bytes:
    file = io.BytesIO()
    np.savez(file, **{key: np.asarray(value) for key, value in arrays.items()})  # type: ignore[arg-type]
    return file.getvalue()


def test_npz_and_json_are_the_same_profile() -> None:
    own = from_npz(npz(**PREFILL, **DECODE), "p")
    assert own == from_json(json.dumps(PREFILL | DECODE), "p")
    assert [(point.isl, point.ttft) for point in own.prefill] == [(100, 10), (1000, 30), (4000, 110)]
    assert [(point.kv_tokens, point.batch) for point in own.decode] == [(10_000, 10), (50_000, 50)]
    assert own.max_kv_tokens == 100_000


def test_rows_of_one_line_are_read_as_columns() -> None:
    assert from_npz(npz(**{key: [value] for key, value in PREFILL.items()}), "p") == from_npz(npz(**PREFILL), "p")


SEVERAL = {
    "prefill_isl": [[100, 1000], [100, 1000], [100, 1000]],
    "prefill_ttft": [[5.0, 15.0], [10.0, 30.0], [20.0, 60.0]],
    "tp": [[8], [4], [2]],
    "pp": [[1], [1], [1]],
}


def test_a_row_for_each_of_several_engines() -> None:
    for gpus, ttft in ((8, 15), (4, 30), (2, 60)):
        profile = from_npz(npz(**SEVERAL), "p", EngineGpus(prefill=gpus, decode=1))
        assert [(point.isl, point.ttft) for point in profile.prefill] == [(100, ttft / 3), (1000, ttft)]


@pytest.mark.parametrize(
    ("gpus", "change", "says"),
    [
        (None, {}, "p: has engines of 8, 4, 2 GPUs; set prefill_engine_num_gpu to that of the graph"),
        (16, {}, "p: has engines of 8, 4, 2 GPUs, but the graph's prefill engines have 16"),
        (8, {"pp": [1, 1]}, "p: pp has 2 values, but others of tp, pp, dp have 3"),
    ],
)
def test_a_profile_of_several_engines_without_the_graphs_own(
    gpus: int | None, change: dict[str, object], says: str
) -> None:
    with pytest.raises(ProfileError) as error:
        from_arrays({**SEVERAL, **change}, "p", EngineGpus(prefill=gpus))
    assert str(error.value) == says


def test_keys_and_grid_of_the_mocker() -> None:
    arrays = {
        "prefill_isl": [100, 1000],
        "prefill_ttft_ms": [10.0, 30.0],
        "decode_active_kv_tokens": [1000, 10_000, 20_000],
        "decode_context_length": [500, 1000],
        "decode_itl": [[5, 4], [9, 8], [np.nan, 12]],
    }
    profile = from_npz(npz(**arrays), "m")
    assert {(p.kv_tokens, p.context, p.itl) for p in profile.decode} == {
        (1000, 500, 5),
        (1000, 1000, 4),
        (10_000, 500, 9),
        (10_000, 1000, 8),
        (20_000, 1000, 12),
    }
    assert profile.dropped == 1
    assert profile.max_kv_tokens == 20_000


def test_order_does_not_matter_and_zero_usage_is_one_sequence() -> None:
    shuffled = {"prefill_isl": [4000, 100, 1000], "prefill_ttft": [110.0, 10.0, 30.0]}
    assert from_arrays(shuffled, "p") == from_arrays(PREFILL, "p")
    profile = from_arrays({**DECODE, "x_kv_usage": [0.0, 0.5]}, "p")
    assert (profile.decode[0].kv_tokens, profile.decode[0].batch) == (1000, 1)


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"other": [1]}, "contains no profile; known arrays are prefill_isl"),
        ({"prefill_isl": [1, 2]}, "no prefill_ttft or prefill_ttft_ms"),
        ({"prefill_isl": [1, 2], "prefill_ttft": [3]}, "prefill_ttft has 1 values, but the matching array has 2"),
        ({"prefill_isl": [1, 2], "prefill_ttft": [3, -1]}, "value 2 of prefill_ttft is not above 0"),
        ({"prefill_isl": [0, 2], "prefill_ttft": [3, 4]}, "value 1 of prefill_isl is below 1"),
        ({"prefill_isl": [1, 2], "prefill_ttft": [None, None]}, "no point has a number"),
        ({"prefill_isl": [1, 2], "prefill_ttft": [3, 1e-300]}, "value 2 of prefill_ttft is not from 1e-06 to 1e+12"),
        ({"prefill_isl": [1, 2], "prefill_ttft": [1e300, 4]}, "value 1 of prefill_ttft is not from 1e-06 to 1e+12"),
        ({"prefill_isl": [1, 1e300], "prefill_ttft": [3, 4]}, "value 2 of prefill_isl is above 1e+12"),
        ({**DECODE, "z_itl": [1e-300, 5.0]}, "value 1 of z_itl is not from 1e-06 to 1e+12"),
        ({**DECODE, "max_kv_tokens": [1e300]}, "max_kv_tokens is [1e+300]"),
        (
            {"decode_active_kv_tokens": [1, 1e300], "decode_context_length": [1, 2], "decode_itl": [5.0, 5.0]},
            "value 2 of decode_active_kv_tokens is not from 0 to 1e+12",
        ),
        (
            {"decode_active_kv_tokens": [1, 2], "decode_context_length": [1, 1e300], "decode_itl": [5.0, 5.0]},
            "value 2 of decode_context_length is above 1e+12",
        ),
        ({"prefill_isl": ["a"], "prefill_ttft": [1]}, "prefill_isl has a value that is not a number"),
        ({**DECODE, "x_kv_usage": [10, 50]}, "value 1 of x_kv_usage is not from 0 to 1"),
        ({key: value for key, value in DECODE.items() if key != "max_kv_tokens"}, "x_kv_usage without max_kv_tokens"),
        ({**DECODE, "max_kv_tokens": [0]}, "max_kv_tokens is [0.0]"),
        (
            {"decode_active_kv_tokens": [1, 2], "decode_context_length": [1, 2, 3], "decode_itl": [[1, 1], [1, 1]]},
            "decode_itl is 2 x 2; it must be 2 x 3",
        ),
        (
            {
                "decode_active_kv_tokens": list(range(1, 201)),
                "decode_context_length": list(range(1, 201)),
                "decode_itl": [[5.0] * 200] * 200,
            },
            "decode_itl has 40000 values, but 20000 at most",
        ),
        (
            {"prefill_isl": list(range(1, 2002)), "prefill_ttft": [5.0] * 2001},
            "2001 points of one prefill engine, but 2000 at most are allowed; remove some",
        ),
    ],
)
def test_errors_name_the_file_and_the_key(arrays: dict[str, object], words: str) -> None:
    with pytest.raises(ProfileError, match=r"^file: ") as refused:
        from_arrays(arrays, "file")
    assert words in str(refused.value)


def test_invalid_files() -> None:
    array = io.BytesIO()
    np.save(array, np.arange(3))
    broken = bytearray(npz(**PREFILL))
    # The compression method in the file's directory.
    broken[broken.index(b"PK\x01\x02") + 10] = 99
    for data in (b"hello", array.getvalue(), bytes(broken)):
        with pytest.raises(ProfileError, match="f: not an NPZ file"):
            from_npz(data, "f")
    with pytest.raises(ProfileError, match="f: not JSON"):
        from_json("{", "f")
    with pytest.raises(ProfileError, match="f: a JSON list"):
        from_json("[]", "f")


def test_pickles_are_not_loaded() -> None:
    file = io.BytesIO()
    np.savez(file, prefill_isl=np.array([object()]), prefill_ttft=np.array([1.0]))
    with pytest.raises(ProfileError, match="not an NPZ file of arrays"):
        from_npz(file.getvalue(), "f")


def test_a_missing_part_is_reported() -> None:
    with pytest.raises(ProfileError, match="no decode points"):
        from_arrays(PREFILL, "p").complete()
    joined = from_arrays(PREFILL, "p").joined(from_arrays(DECODE, "d"))
    assert joined.complete() is joined


def test_folders_of_the_profiler_are_read(tmp_path: Path) -> None:
    for part, arrays in (("prefill", PREFILL), ("decode", DECODE)):
        folder = tmp_path / f"selected_{part}_interpolation"
        folder.mkdir()
        (folder / "raw_data.npz").write_bytes(npz(**arrays))
        (tmp_path / f"{part}_raw_data.json").write_text(json.dumps(arrays))
    profile = read_profile([tmp_path])
    assert (len(profile.prefill), len(profile.decode)) == (3, 2)
    with pytest.raises(ProfileError, match="no profile in this folder"):
        read_profile([_empty(tmp_path)])
    with pytest.raises(ProfileError, match=r"gone\.npz: no such file"):
        read_profile([tmp_path / "gone.npz"])
    (table := tmp_path / "x.csv").touch()
    with pytest.raises(ProfileError, match=r"profiles are \.npz or \.json"):
        read_profile([table])


def _empty(folder: Path) -> Path:
    made = folder / "empty"
    made.mkdir()
    return made


def test_the_shared_profiles(measured: dict[str, Profile]) -> None:
    for profile in measured.values():
        assert (len(profile.prefill), len(profile.decode), profile.max_kv_tokens) == (17, 41, 945_029)
