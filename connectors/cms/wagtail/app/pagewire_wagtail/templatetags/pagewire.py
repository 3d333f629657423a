"""`{% load pagewire %} ... {% pagewire_widget %}`: the chat widget on a page, in the page's language."""

from __future__ import annotations

from typing import Any

from django import template
from django.template.context import Context
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import get_language

from pagewire_wagtail.conf import pagewire
from pagewire_wagtail.public import language_tag

register = template.Library()


@register.simple_tag(takes_context=True)
def pagewire_widget(context: Context, **attributes: Any) -> SafeString | str:
    """A script tag; empty if PAGEWIRE is not set, and in Wagtail's preview.

    `{% pagewire_widget theme="dark" %}` becomes data-theme="dark", and so on for all attributes of the widget. Adds the
    nonce of django-csp, if there is one.
    """
    setting = pagewire()
    request = context.get("request")
    if setting is None or getattr(request, "is_preview", False):
        return ""
    page = context.get("page")
    lang = language_tag(page.locale.language_code if page else get_language() or "en")
    data = {"site": setting.site, "lang": lang} | attributes
    said = format_html_join("", ' data-{}="{}"', ((name.replace("_", "-"), value) for name, value in data.items()))
    nonce = getattr(request, "csp_nonce", "")
    return format_html(
        '<script src="{}/widget.js"{}{} defer></script>',
        setting.url,
        said,
        format_html(' nonce="{}"', nonce) if nonce else "",
    )
