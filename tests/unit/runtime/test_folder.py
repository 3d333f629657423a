"""A folder that others write to: nothing outside it is read, whatever they do between a look and its opening."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from pipelines.runtime import folder as module
from pipelines.runtime.folder import Folder, Unfit, reason


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    (tmp_path / "pages" / "sub").mkdir(parents=True)
    (tmp_path / "pages" / "sub" / "a.md").write_text("ours")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "a.md").write_text("secret")
    return Folder(tmp_path / "pages")


def test_a_file_is_read_by_either_name_and_through_links_within(folder: Folder, tmp_path: Path) -> None:
    (folder.path / "link.md").symlink_to("sub/a.md")
    (folder.path / "also").symlink_to("sub")
    (tmp_path / "current").symlink_to("pages")
    for name in ("sub/a.md", "sub/../sub/a.md", "link.md", "also/a.md", folder.path / "sub" / "a.md"):
        assert folder.read(Path(name), 4) == b"ours"
    for name in ("sub/a.md", tmp_path / "current" / "sub" / "a.md", folder.path / "sub" / "a.md"):
        assert Folder(tmp_path / "current").read(Path(name), 4) == b"ours"
    assert folder.head(Path("sub/a.md"), 2) == b"ou"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("../elsewhere/a.md", "leads out of its folder"),
        ("/etc/passwd", "leads out of its folder"),
        ("/etc/none", "leads out of its folder"),
        ("out/a.md", "leads out of its folder"),
        (".hidden/a.md", "a hidden file"),
        ("behind.md", "a hidden file"),
        ("circle.md", "a link that leads in a circle"),
        ("sub", "not a regular file"),
        (".", "not a regular file"),
        ("pipe.md", "not a regular file"),
        ("gone.md", "cannot be read: No such file or directory"),
        ("a\0.md", "embedded null"),
        ("x" * 300, "cannot be read: File name too long"),
        ("sub/a.md/b.md", "cannot be read: Not a directory"),
        ("long.md", "larger than 4 bytes"),
    ],
)
def test_what_is_not_read_is_said_without_places_of_this_machine(folder: Folder, name: str, said: str) -> None:
    (folder.path / "out").symlink_to(folder.path.parent / "elsewhere")
    (folder.path / ".hidden").mkdir()
    (folder.path / ".hidden" / "a.md").write_text("ours")
    (folder.path / "behind.md").symlink_to(".hidden/a.md")
    (folder.path / "circle.md").symlink_to("circle.md")
    os.mkfifo(folder.path / "pipe.md")  # opening one waits for a writer
    (folder.path / "long.md").write_text("longer")
    with pytest.raises((Unfit, OSError, ValueError)) as caught:
        folder.read(Path(name), 4)
    assert said in reason(caught.value)
    assert str(folder.path) not in reason(caught.value)


def _file_to_link(folder: Path) -> None:
    (folder / "sub" / "a.md").unlink()
    (folder / "sub" / "a.md").symlink_to(folder.parent / "elsewhere" / "a.md")


def _folder_to_link(folder: Path) -> None:
    shutil.rmtree(folder / "sub")
    (folder / "sub").symlink_to(folder.parent / "elsewhere")


def _root_to_link(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.symlink_to(folder.parent / "elsewhere")
    (folder.parent / "elsewhere" / "sub").mkdir()
    (folder.parent / "elsewhere" / "sub" / "a.md").write_text("secret")


def _file_to_pipe(folder: Path) -> None:
    (folder / "sub" / "a.md").unlink()
    os.mkfifo(folder / "sub" / "a.md")


@pytest.mark.parametrize("swap", [_file_to_link, _folder_to_link, _root_to_link, _file_to_pipe])
def test_what_is_put_there_between_look_and_opening_is_not_read(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, swap: Callable[[Path], None]
) -> None:
    look = Folder._resolved

    def swapping(self: Folder, path: Path) -> Path:
        found = look(self, path)
        swap(self.path)
        return found

    monkeypatch.setattr(Folder, "_resolved", swapping)
    with pytest.raises((Unfit, OSError)):
        folder.read(Path("sub/a.md"), 100)


def test_a_file_that_is_written_to_meanwhile_is_left_for_the_next_time(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = os.fstat
    path = folder.path / "sub" / "a.md"

    def writing(handle: int) -> os.stat_result:
        found = facts(handle)
        with path.open("ab") as file:
            file.write(b"!")
        return found

    monkeypatch.setattr(module.os, "fstat", writing)
    with pytest.raises(Unfit, match="was written to while it was read"):
        folder.read(Path("sub/a.md"), 100)


def test_names_are_shown_so_that_no_terminal_obeys_them(folder: Folder) -> None:
    names = {"ä b.md": "ä b.md", "a\x1b[2J\n.md": r"a\x1b[2J\n.md", os.fsdecode(b"\xe9.md"): r"\xe9.md"}
    assert {name: folder.relative(folder.path / name) for name in names} == names


def test_hidden_files_and_what_a_repair_has_left_are_not_met(folder: Folder) -> None:
    for name in (".git/a.md", "lost+found/a.md", "sub/.a.md", "b.md"):
        (folder.path / name).parent.mkdir(exist_ok=True)
        (folder.path / name).write_text("x")
    assert [folder.relative(found.path) for found in folder.walk()] == ["b.md", "sub/a.md"]
