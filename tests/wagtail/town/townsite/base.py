"""The database every test run starts from: `TOWN_DB=FILE python -m townsite.base`."""

import os


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "townsite.settings")
    import django

    django.setup()
    from django.contrib.auth import get_user_model
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    get_user_model().objects.create_superuser("editor", "editor@example.org", "pw")

    from wagtail.models import Locale, Page, Site

    from townsite.models import ArticlePage

    for code in ("de", "pt-br"):
        Locale.objects.create(language_code=code)
    Site.objects.all().delete()
    Page.objects.filter(depth=2).first().delete()
    root = Page.objects.get(depth=1)
    home = root.add_child(instance=ArticlePage(title="Town", slug="home"))
    Site.objects.create(
        hostname="127.0.0.1", port=int(os.environ.get("TOWN_PORT", "80")), root_page=home, is_default_site=True
    )
    for code in ("de", "pt-br"):
        translated = home.copy_for_translation(Locale.objects.get(language_code=code))
        translated.save_revision().publish()


if __name__ == "__main__":
    main()
