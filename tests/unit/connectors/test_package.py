"""What is installed in a CMS, as a zip."""

from __future__ import annotations

import re
from pathlib import Path
from zipfile import ZipFile

import pytest

from connectors.cms.package import PACKAGES, pack


@pytest.mark.parametrize("cms", PACKAGES)
def test_the_zip_is_the_same_every_time(tmp_path: Path, cms: str) -> None:
    first, second = (pack(cms, tmp_path / name).read_bytes() for name in ("a", "b"))
    assert first == second


@pytest.mark.parametrize(
    ("cms", "main"),
    [("wordpress", "pagewire/pagewire.php"), ("drupal", "pagewire/pagewire.info.yml"), ("typo3", "ext_emconf.php")],
)
def test_the_cms_finds_what_it_looks_for(tmp_path: Path, cms: str, main: str) -> None:
    with ZipFile(pack(cms, tmp_path)) as packed:
        assert main in packed.namelist()
        licence = main.rpartition("/")[0]
        assert "GNU GENERAL PUBLIC LICENSE" in packed.read(f"{licence}/LICENSE".lstrip("/")).decode()


def test_the_extensions_zip_has_its_version() -> None:
    said = (PACKAGES["typo3"].source / "ext_emconf.php").read_text(encoding="utf-8")
    version = re.search(r"'version' => '(\S+)'", said)
    assert version
    assert PACKAGES["typo3"].zip == f"pagewire_{version[1]}.zip"
