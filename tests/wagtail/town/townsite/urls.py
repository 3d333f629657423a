"""As docs/howto/wagtail.md says it, and a door for the tests."""

from django.conf import settings
from django.urls import include, path
from wagtail import urls as wagtail_urls
from wagtail.admin import urls as wagtailadmin_urls
from wagtail.documents import urls as wagtaildocs_urls

from townsite.python import run

urlpatterns = [
    path("admin/", include(wagtailadmin_urls)),
    path("documents/", include(wagtaildocs_urls)),
    path("pagewire/", include("pagewire_wagtail.urls")),
    path("python", run),
]
if settings.WAGTAIL_I18N_ENABLED:
    from django.conf.urls.i18n import i18n_patterns

    urlpatterns += i18n_patterns(path("", include(wagtail_urls)), prefix_default_language=True)
