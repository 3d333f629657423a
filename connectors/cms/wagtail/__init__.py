"""Wagtail: the Django app in `app/` pushes changes, and answers what `connectors/cms/module` asks."""
