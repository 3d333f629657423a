"""Scope: every file of the product has a capability, and every capability an entry."""

from __future__ import annotations

import re

from docs.size import BESIDE, ROOT, capabilities, owner_of
from tests.package.contents import known_files


def test_every_file_belongs_to_one_capability_and_every_name_is_there() -> None:
    owners = {folder: each.name for each in capabilities() for folder in each.folders}
    assert sum(len(each.folders) for each in capabilities()) == len(owners)
    assert [folder for folder in owners if not (ROOT / folder).exists()] == []
    ours = [name for name in known_files() if name.endswith(".py") and name.partition("/")[0] not in BESIDE]
    assert [name for name in ours if owner_of(name, owners) is None] == []


def test_every_capability_names_where_to_begin_and_stands_on_the_page() -> None:
    page = (ROOT / "docs/scope.md").read_text(encoding="utf-8")
    for each in capabilities():
        file, _, name = each.entry.partition(": ")
        assert re.search(rf"\b{name.rpartition('.')[2]}\b", (ROOT / file).read_text(encoding="utf-8")), each.entry
        assert f"| {each.name} |" in page
