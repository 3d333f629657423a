"""The plugin as a zip that WordPress installs: `python -m connectors.cms.wordpress.package dist`.

The same files give the same bytes, wherever and whenever they are packed.
"""

from __future__ import annotations

import sys
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

PLUGIN = Path(__file__).parent / "plugin" / "pagewire"
THE_SAME_DAY = (1980, 1, 1, 0, 0, 0)  # the first that a zip can tell


def pack(folder: Path) -> Path:
    """Write `pagewire.zip` into the folder; returns where it is."""
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / "pagewire.zip"
    with ZipFile(target, "w", ZIP_DEFLATED, compresslevel=9) as packed:
        for path in sorted(path for path in PLUGIN.rglob("*") if path.is_file()):
            info = ZipInfo(f"pagewire/{path.relative_to(PLUGIN).as_posix()}", THE_SAME_DAY)
            info.create_system = 3  # Unix, also where it is packed on Windows
            info.external_attr = 0o100644 << 16
            info.compress_type = ZIP_DEFLATED
            packed.writestr(info, path.read_bytes())
    return target


if __name__ == "__main__":
    sys.stdout.write(f"{pack(Path(sys.argv[1]))}\n")
