"""Keep the code and the messages of a release, for tests/contract/test_releases.py.

python -m tests.contract.keep_release COMMIT        a tag, or any commit

It writes VERSION-COMMIT.zip into tests/contract/releases, where README.md says what is in it.
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from tests.contract.kept_release import FACTS, RELEASES, WRITTEN, KeptRelease
from tests.contract.messages import MESSAGES, STORED

ROOT = Path(__file__).parents[2]
ROOM = "schemas/"  # it imports none of our other rooms
SAME_DAY = (1980, 1, 1, 0, 0, 0)  # a zip made again is the same, byte for byte


def keep(commit: str, folder: Path) -> Path:
    """Raises: subprocess.CalledProcessError: there is no such commit here."""
    commit, date = _git("log", "-1", "--format=%H %cs", commit).decode().split()
    version = tomllib.loads(_git("show", f"{commit}:pyproject.toml").decode())["project"]["version"]
    file = folder / f"{version}-{commit[:7]}.zip"
    files = {FACTS: _json({"version": version, "commit": commit, "date": date}), **_code(commit)}
    _pack(file, files)
    said = KeptRelease(file).asked({**MESSAGES, **STORED})
    _pack(file, files | {WRITTEN: _json({name: one.written for name, one in said.items() if one.written is not None})})
    return file


def _code(commit: str) -> dict[str, bytes]:
    """What the commit's wheel has in this room."""
    with tarfile.open(fileobj=io.BytesIO(_git("archive", commit, ROOM))) as packed:
        return {
            member.name: content.read()
            for member in packed
            if member.name.endswith(".py") and (content := packed.extractfile(member))
        }


def _pack(file: Path, files: dict[str, bytes]) -> None:
    with ZipFile(file, "w", ZIP_DEFLATED) as packed:
        for name, content in sorted(files.items()):
            packed.writestr(ZipInfo(name, SAME_DAY), content, ZIP_DEFLATED)


def _json(value: object) -> bytes:
    return json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False).encode()


def _git(*arguments: str) -> bytes:
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, check=True).stdout


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    RELEASES.mkdir(exist_ok=True)
    print(keep(sys.argv[1], RELEASES).relative_to(ROOT))
    return 0


if __name__ == "__main__":
    sys.exit(main())
