"""`path("pagewire/", include("pagewire_wagtail.urls"))`, before Wagtail's URLs, which match every path."""

from __future__ import annotations

from django.urls import path

from pagewire_wagtail import views

app_name = "pagewire_wagtail"
urlpatterns = [
    path("inventory", views.inventory, name="inventory"),
    path("pages", views.pages, name="pages"),
]
