"""A small town's site in three languages, as `wagtail start` makes one; what differs between runs is in TOWN_*."""

import os
from pathlib import Path

BASE = Path(__file__).resolve().parent
PORT = os.environ.get("TOWN_PORT", "8000")

SECRET_KEY = "only-for-tests"
DEBUG = False
ALLOWED_HOSTS = ["127.0.0.1", "localhost"]
INSTALLED_APPS = [
    "townsite",
    "pagewire_wagtail",
    "wagtail.contrib.simple_translation",
    "wagtail.sites",
    "wagtail.users",
    "wagtail.snippets",
    "wagtail.documents",
    "wagtail.images",
    "wagtail.search",
    "wagtail.admin",
    "wagtail.locales",
    "wagtail",
    "modelcluster",
    "taggit",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
]
if os.environ.get("TOWN_TASKS") != "none":  # Wagtail 7.1 and newer
    INSTALLED_APPS.append("django_tasks")
MIDDLEWARE = [
    "pagewire_wagtail.markdown.MarkdownMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]
ROOT_URLCONF = "townsite.urls"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": os.environ.get("TOWN_DB", BASE / "db.sqlite3"),
        "OPTIONS": {
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF",
        },
    }
}
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]  # fast
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
STATIC_URL = "/static/"
# One for all processes, so that a test can clear what others have left in it.
CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.filebased.FileBasedCache",
        "LOCATION": f"{DATABASES['default']['NAME']}.cache",
    }
}
MEDIA_ROOT, MEDIA_URL = f"{DATABASES['default']['NAME']}.media", "/media/"
WAGTAILDOCS_SERVE_METHOD = os.environ.get("TOWN_DOCUMENTS", "serve_view")
USE_TZ = True
TIME_ZONE = "UTC"
USE_I18N = True
LANGUAGE_CODE = "en"
WAGTAIL_I18N_ENABLED = True
LANGUAGES = WAGTAIL_CONTENT_LANGUAGES = [("en", "English"), ("de", "German"), ("pt-br", "Brazilian Portuguese")]
WAGTAIL_SITE_NAME = "Town"
WAGTAILADMIN_BASE_URL = f"http://127.0.0.1:{PORT}"
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {"console": {"class": "logging.StreamHandler"}},
    "root": {"handlers": ["console"], "level": "WARNING"},
}
PAGEWIRE = None
if url := os.environ.get("TOWN_PAGEWIRE_URL"):
    PAGEWIRE = {
        "url": url,
        "site": os.environ["TOWN_PAGEWIRE_SITE"],
        "connector": "wagtail",
        "secret": os.environ["TOWN_PAGEWIRE_SECRET"],
        "thread": os.environ.get("TOWN_PAGEWIRE_THREAD") != "no",
        "timeout": 10,
    }
