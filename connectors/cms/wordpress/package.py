"""The plugin as a zip that WordPress installs: `python -m connectors.cms.wordpress.package dist`.

The zip is reproducible: the same files give the same bytes.
"""

from __future__ import annotations

import sys
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

PLUGIN = Path(__file__).parent / "plugin" / "pagewire"
FIXED_TIME = (1980, 1, 1, 0, 0, 0)  # the earliest of the format


def pack(folder: Path) -> Path:
    """Write `pagewire.zip` into the folder, and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / "pagewire.zip"
    with ZipFile(target, "w", ZIP_DEFLATED, compresslevel=9) as packed:
        for path in sorted(path for path in PLUGIN.rglob("*") if path.is_file()):
            info = ZipInfo(f"pagewire/{path.relative_to(PLUGIN).as_posix()}", FIXED_TIME)
            info.create_system = 3  # Unix, even if packed on Windows
            info.external_attr = 0o100644 << 16
            info.compress_type = ZIP_DEFLATED
            packed.writestr(info, path.read_bytes())
    return target


if __name__ == "__main__":
    sys.stdout.write(f"{pack(Path(sys.argv[1]))}\n")
