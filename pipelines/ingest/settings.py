"""What is taken of a page."""

from __future__ import annotations

from pydantic import Field

from pipelines.runtime.settings import LocalPath, SettingsGroup, SitesSettings


class IntakeSettings(SitesSettings):
    """What the edge accepts."""

    content_limit: int = Field(default=4 * 1024 * 1024, gt=0, description="Largest `content`, in UTF-8 bytes.")


class AttachmentSettings(SettingsGroup):
    """What is read of attachments, and where they may come from."""

    attachment_limit: int = Field(default=20 * 1024 * 1024, gt=0, description="Largest attachment, in bytes.")
    attachment_budget: int = Field(
        default=40 * 1024 * 1024,
        gt=0,
        description="Bytes of attachments that a process holds at once, fetched and not yet read; others wait, and one"
        " that is larger waits until it is alone.",
    )
    attachment_text: int = Field(
        default=1_000_000, ge=0, description="Characters that are read of a page's attachments together; 0: none."
    )
    attachment_timeout: float = Field(
        default=60.0, gt=0, le=200, description="Seconds that reading one attachment may take."
    )
    attachment_memory: int = Field(
        default=2_048,
        ge=512,
        description="MiB of memory (address space) of the process that reads attachments.",
    )
    attachment_folder: LocalPath | None = Field(
        default=None,
        description="Folder of this machine in which `path` attachments of the only site may lie; with several sites "
        "each has an `attachment_folder` of its own. Default: none are read.",
    )
