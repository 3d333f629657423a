"""The manifest: the contents of a backup, with the checksums of its files."""

from __future__ import annotations

from typing import Final, Literal

from pydantic import AwareDatetime, Field

from schemas.base import Wire

FORMAT = 2  # increased when older software must not read it
CHANGES: Final = "changes"

PartName = Literal["changes", "conversations", "questions", "examples", "texts", "switches"]


class BackupFile(Wire):
    """One file of a backup: gzip, a line of JSON for each record."""

    name: PartName
    file: str = Field(pattern=r"^[a-z]+\.ndjson\.gz$", description="Its name, in the backup's folder.")
    records: int = Field(ge=0)
    bytes: int = Field(ge=0, description="Of the file.")
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$", description="Of the file: `sha256sum` says the same.")
    sites: dict[str, int] = Field(default_factory=dict, description="Records of each site.")
    until: dict[int, int] | None = Field(
        default=None, description="Of a topic: by partition the first offset that was not read any more."
    )
    unreadable: int = Field(default=0, ge=0, description="Records of the topic that are no changes; left out.")


class IndexFacts(Wire):
    """How a site's live index was made, for information: a restore makes a new one by the settings."""

    embedder: str
    chunker: str = Field(description="The chunker's fingerprint.")


class Manifest(Wire):
    """`manifest.json`. It is written last: a folder without one is no backup."""

    format: int = Field(default=FORMAT, ge=1)
    pagewire: str = Field(description="Version that made the backup.")
    began_at: AwareDatetime = Field(description="Of the pages: every change accepted before this is in it.")
    ended_at: AwareDatetime
    parts: tuple[BackupFile, ...]
    indexes: dict[str, IndexFacts] = Field(default_factory=dict, description="Of the sites that have one.")
    token_mark: str | None = Field(
        default=None,
        description="A fingerprint of the secret that visitor tokens are signed with; null: not known where the "
        "backup was made.",
    )
    notes: tuple[str, ...] = Field(default=(), description="What is not in it, and why.")

    @property
    def sites(self) -> frozenset[str]:
        return frozenset(site for part in self.parts for site in part.sites)

    def part(self, name: PartName) -> BackupFile | None:
        return next((part for part in self.parts if part.name == name), None)
