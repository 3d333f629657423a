"""Page ids in paths: slashes (`news%2F12`) belong to them, and so does whatever PageId will refuse."""

from __future__ import annotations

from typing import ClassVar

from starlette.convertors import Convertor, register_url_convertor

PAGE_ID = "{page_id:page_id}"


class PageIdConvertor(Convertor[str]):
    """All that is left of the path."""

    regex: ClassVar[str] = r"(?s:.+)"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("page_id", PageIdConvertor())
