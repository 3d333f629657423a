"""Files that somebody may put into a folder of pages to stop it, or to read what lies elsewhere."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

HUGE = 10 * 2**30  # bytes; the disk holds none of them
DEPTH = 1_200  # folders in each other: Python recurses a thousand times


def _front_matter(said: str) -> Callable[[Path], object]:
    return lambda path: path.write_text(f"---\n{said}\n---\ntext\n")


def _huge(path: Path) -> None:
    path.touch()
    os.truncate(path, HUGE)


def _far_down(path: Path) -> None:
    path.mkdir()
    for _ in range(DEPTH):
        path /= "d"
        path.mkdir()
    (path / "page.md").write_text("text")


ALIASES = "\n".join(
    ["a0: &a0 [x]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 8)), "id: *a7"]
)

# What to make below the folder, and what is said of it.
FAILED: dict[str, tuple[Callable[[Path], object], str]] = {
    "nested.md": (_front_matter("a: " + "[" * 3_000), "front matter: more than 8 levels"),
    "aliases.md": (_front_matter(ALIASES), "anchors, aliases and tags cannot be used"),
    "tag.md": (_front_matter("id: !!python/name:os.system"), "anchors, aliases and tags cannot be used"),
    "number.md": (_front_matter("id: " + "9" * 5_000), "integer string conversion"),
    "date.md": (_front_matter("changed_at: 2026-13-45"), "front matter: month must be in 1..12"),
    "sixtieths.md": (
        _front_matter("revision: 1" + ":59" * 300 + ".5"),
        "front matter: int too large to convert to float",
    ),
    "revision.md": (_front_matter(f"revision: {10**30}"), "revision: "),
    "surrogate.md": (_front_matter(r'id: "\ud800"'), "invalid Unicode character"),
    "list.md": (_front_matter("id: [a, b]"), "id: "),
    "binary.md": (lambda path: path.write_bytes(b"caf\xe9\0\1"), "not a text in an encoding that can be told"),
    "huge.md": (_huge, "larger than 33,554,432 bytes"),
    "pipe.md": (os.mkfifo, "not a regular file"),
    os.fsdecode(b"caf\xe9.md"): (lambda path: path.write_text("text"), "its name is not UTF-8"),
    "far/down": (_far_down, "id: String should have at most 256 characters"),
}
# By an import of its own these are unknown words; a connector's pages may name attachments.
ATTACHMENTS = {
    "nul.md": (_front_matter(r'attachments: ["a\0.pdf"]'), r"attachments: 'a\x00.pdf' is no file in this folder"),
}
# Links: where to, and what is said of them.
OMITTED: dict[str, tuple[str, str]] = {
    "passwd.md": ("/etc/passwd", "leads out of its folder"),
    "up.md": ("../secret.md", "leads out of its folder"),
    "itself.md": ("itself.md", "a link that leads in a circle"),
    "nowhere.md": ("gone.md", "a link that leads nowhere"),
    "config.md": (".git/config", "a hidden file"),
}


@contextmanager
def put(folder: Path) -> Iterator[None]:
    """All of them in a folder, beside `.git/config`, for a while."""
    (folder / ".git").mkdir()
    (folder / ".git" / "config").write_text("[secret]")
    (folder.parent / "secret.md").write_text("secret")
    for name, (make, _) in (FAILED | ATTACHMENTS).items():
        (folder / name).parent.mkdir(exist_ok=True)
        make(folder / name)
    for name, (target, _) in OMITTED.items():
        (folder / name).symlink_to(target)
    yield
    deepest = Path(folder / "far" / "down", *["d"] * DEPTH)  # shutil.rmtree cannot remove it
    (deepest / "page.md").unlink()
    for place in (deepest, *deepest.parents[:DEPTH]):
        place.rmdir()
