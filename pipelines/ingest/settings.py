"""What is taken of a page."""

from __future__ import annotations

from pydantic import Field

from pipelines.runtime.settings import SettingsGroup, SitesSettings


class IntakeSettings(SitesSettings):
    """What the edge accepts."""

    content_limit: int = Field(default=4 * 1024 * 1024, gt=0, description="Largest `content`, in UTF-8 bytes.")


class AttachmentSettings(SettingsGroup):
    """What is read of attachments."""

    attachment_limit: int = Field(default=20 * 1024 * 1024, gt=0, description="Largest attachment, in bytes.")
