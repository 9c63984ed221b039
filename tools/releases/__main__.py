"""Command line: changes since the last release (`show`), whether they are allowed (`check`), a new release (`freeze`),
and the API's progress to v1 (`graduation`).
"""

import argparse
import sys
from pathlib import Path

from tools.releases.compare import breaking, compare
from tools.releases.graduation import criteria
from tools.releases.history import file_of, releases, text, version_of
from tools.releases.policy import violations
from tools.releases.snapshot import today

_HERE = Path(__file__).resolve().parents[2]


def main(arguments: list[str] | None = None) -> int:
    """The exit code: 1 if the policy is violated, or a release would be overwritten."""
    parser = argparse.ArgumentParser(prog="python -m tools.releases", description=__doc__)
    parser.add_argument("--root", type=Path, default=_HERE, help="checkout (default: the one of this file)")
    commands = parser.add_subparsers(dest="command")
    commands.add_parser("show", help="print what changed since the last release")
    commands.add_parser("check", help="fail if something that others rely on changed without notice")
    commands.add_parser("graduation", help="print which criteria for the next version of the API are met")
    freezing = commands.add_parser("freeze", help="write the file of the release that pyproject.toml names")
    freezing.add_argument(
        "--again", action="store_true", help="write the file again, if that release is not published yet"
    )
    options = parser.parse_args(arguments)
    root: Path = options.root
    if not (root / "shared" / "pyproject.toml").is_file():
        parser.error(f"{root} is not a checkout of the platform; set --root")
    match options.command:
        case "freeze":
            return _freeze(root, again=options.again)
        case "check":
            return _check(root)
        case "graduation":
            return _graduation(root)
        case _:
            return _show(root)


def _show(root: Path) -> int:
    past = releases(root)
    for change in compare(past[-1], today(root, version_of(root))) if past else ():
        print(f"{'breaking' if change.breaking else 'compatible'}: {change}")
    return 0


def _check(root: Path) -> int:
    past, version = releases(root), version_of(root)
    if not past:
        print("there is no release yet, so nothing is promised: `python -m tools.releases freeze` writes the first one")
        return 0
    broken = list(violations(compare(past[-1], today(root, version)), past, version))
    for problem in broken:
        print(problem)
    if broken and past[-1]["release"] == version:
        print(f"If {version} is not published yet: `python -m tools.releases freeze --again` writes its file again.")
    return 1 if broken else 0


def _graduation(root: Path) -> int:
    step = ""
    for each in criteria(root):
        if each.step != step:
            step = each.step
            print(step)
        print(f"  {each}")
    return 0


def _freeze(root: Path, *, again: bool) -> int:
    version = version_of(root)
    file, now = file_of(root, version), today(root, version)
    older = [each for each in releases(root) if each["release"] != version]
    broken = list(violations(compare(older[-1], now), older, version)) if older else []
    for problem in broken:
        print(problem)
    if broken:
        return 1
    if file.is_file() and not again and file.read_text(encoding="utf-8") != text(now):
        felt = breaking(compare(next(each for each in releases(root) if each["release"] == version), now))
        print(
            f"{file.relative_to(root)} exists and differs, in {len(felt)} places that users notice. If that release is "
            "not published yet, write the file again with --again; otherwise raise the version in pyproject.toml"
        )
        return 1
    file.write_text(text(now), encoding="utf-8")
    print(f"wrote: {file.relative_to(root).as_posix()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
