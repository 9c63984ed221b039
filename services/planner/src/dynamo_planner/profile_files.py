"""Reads measured profiles from disk: files, or the output folder of a profiler."""

from collections.abc import Iterable
from pathlib import Path

from dynamo_planner.core.profile import ANY_ENGINE, EngineGpus, Profile, ProfileError
from dynamo_planner.core.profile_arrays import from_json, from_npz

FOLDER_FILES = (
    "selected_prefill_interpolation/raw_data.npz",
    "selected_decode_interpolation/raw_data.npz",
    "prefill_raw_data.json",
    "decode_raw_data.json",
    "perf_data.npz",
)
"""Paths to which Dynamo's profiler writes its arrays, and its ConfigMaps their copies (planner.md, sections a.3 and
b.1).
"""

READERS = {".npz": from_npz, ".json": from_json}


def read_profile(paths: Iterable[Path], gpus: EngineGpus = ANY_ENGINE) -> Profile:
    """One profile from all given files and folders. ProfileError names the file and the problem; blocks while it reads.

    `gpus` selects the engine in files that hold several.
    """
    files = [file for path in paths for file in _files(path)]
    if not files:
        raise ProfileError("no profile: name files (.npz, .json), or a folder that a profiler wrote")
    profile = Profile()
    for file in files:
        reader = READERS.get(file.suffix.lower())
        if reader is None:
            raise ProfileError(f"{file}: profiles are .npz or .json files")
        try:
            data = file.read_bytes()
        except OSError as error:
            raise ProfileError(f"{file}: {error.strerror or error}") from error
        profile = profile.joined(reader(data, str(file), gpus))
    return profile


def _files(path: Path) -> list[Path]:
    if not path.exists():
        raise ProfileError(f"{path}: no such file or folder")
    if not path.is_dir():
        return [path]
    known = [path / name for name in FOLDER_FILES if (path / name).is_file()]
    # NPZ files and their JSON copies hold the same points, so only one kind is read.
    npz = [file for file in known if file.suffix == ".npz"]
    files = npz or known or sorted(file for file in path.iterdir() if file.suffix in READERS)
    if not files:
        raise ProfileError(f"{path}: no profile in this folder; looked for {', '.join(FOLDER_FILES)} and *.npz, *.json")
    return files
