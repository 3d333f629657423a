"""What is installed in a CMS, as a zip: `python -m connectors.cms.package wordpress dist`.

The zip is reproducible: the same files give the same bytes.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

FIXED_TIME = (1980, 1, 1, 0, 0, 0)  # the earliest of the format
CMS = Path(__file__).parent


class Installed(NamedTuple):
    """Files that are installed in a CMS."""

    source: Path
    zip: str
    folder: str = "pagewire/"  # in the zip


PACKAGES = {
    "wordpress": Installed(CMS / "wordpress/plugin/pagewire", "pagewire.zip"),
    "drupal": Installed(CMS / "drupal/module/pagewire", "pagewire-drupal.zip"),
    # TYPO3 takes the extension's name from the file's, and its files from the root of the zip.
    "typo3": Installed(CMS / "typo3/extension/pagewire", "pagewire_0.3.0.zip", folder=""),
}


def pack(cms: str, folder: Path) -> Path:
    """Write the zip for a CMS into the folder, and return its path. Raises: KeyError: there is none."""
    source, name, inside = PACKAGES[cms]
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / name
    with ZipFile(target, "w", ZIP_DEFLATED, compresslevel=9) as packed:
        for path in sorted(path for path in source.rglob("*") if path.is_file()):
            info = ZipInfo(f"{inside}{path.relative_to(source).as_posix()}", FIXED_TIME)
            info.create_system = 3  # Unix, even if packed on Windows
            info.external_attr = 0o100644 << 16
            info.compress_type = ZIP_DEFLATED
            packed.writestr(info, path.read_bytes())
    return target


if __name__ == "__main__":
    sys.stdout.write(f"{pack(sys.argv[1], Path(sys.argv[2]))}\n")
