"""The switch of a site's chat: changed while the system runs, followed by all gateways and workers."""

from __future__ import annotations

from typing import Literal

from pydantic import AwareDatetime, Field

from schemas.base import SiteId, Wire


class ChatSwitch(Wire):
    """The last state of one site's switch."""

    site: SiteId
    on: bool
    changed_at: AwareDatetime
    changed_by: str = Field(default="", description="Name of the key, or the machine's user.")


class ChatState(Wire):
    """Whether a site's visitors are answered, and which setting decides."""

    site: SiteId
    on: bool = Field(description="Whether questions are answered.")
    by: Literal["default", "switch", "file"] = Field(
        description="`file`: `chat.enabled` of pagewire.yaml is false, and no switch comes against it; `switch`: it "
        "was thrown; `default`: neither."
    )
    changed_at: AwareDatetime | None = Field(default=None, description="When the switch was thrown last.")
    changed_by: str = ""


class ChatList(Wire):
    chats: tuple[ChatState, ...] = Field(description="Of the sites that the key may see, by their names.")


class ChatOrder(Wire):
    """The body of `PUT .../chat`."""

    on: bool = Field(description="`false`: no question is answered, also not those of programs.")
