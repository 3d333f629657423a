"""Wagtail's report "Pagewire": waiting and refused pages. For superusers, since it lists pages of all sections."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import path, reverse
from wagtail import hooks
from wagtail.admin.menu import AdminOnlyMenuItem

from pagewire_wagtail.conf import WrongSetting, pagewire
from pagewire_wagtail.courier import pending
from pagewire_wagtail.models import CourierState, PageRecord
from pagewire_wagtail.public import Page

SHOWN = 50  # lines of a list


@hooks.register("register_admin_urls")
def admin_urls() -> list[Any]:
    return [path("reports/pagewire/", report, name="pagewire_report")]


@hooks.register("register_reports_menu_item")
def menu_item() -> AdminOnlyMenuItem:
    return AdminOnlyMenuItem("Pagewire", reverse("pagewire_report"), name="pagewire", icon_name="site", order=900)


def report(request: HttpRequest) -> HttpResponse:
    """The page."""
    if not request.user.is_superuser:
        raise PermissionDenied
    try:
        setting, wrong = pagewire(), ""
    except WrongSetting as err:
        setting, wrong = None, "; ".join(err.args)
    shown = {
        "setting": setting,
        "wrong": wrong,
        "state": CourierState.objects.filter(pk=1).first(),
        "count": pending().count(),
        "waiting": _named(pending()[:SHOWN]),
        "problems": _named(PageRecord.objects.exclude(problem="").order_by("-revision")[:SHOWN]),
        "told": _named(PageRecord.objects.filter(told_at__isnull=False).order_by("-told_at")[:SHOWN]),
    }
    return render(request, "pagewire_wagtail/report.html", shown)


def _named(records: Any) -> list[tuple[PageRecord, str]]:
    """The records with their pages' titles, if the pages still exist."""
    records = list(records)
    keys = [record.page_key for record in records]
    titles = dict(Page.objects.filter(translation_key__in=keys).values_list("translation_key", "title"))
    by_key = {str(key): title for key, title in titles.items()}
    return [(record, by_key.get(record.page_key, "(deleted)")) for record in records]
