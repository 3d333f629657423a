"""Wagtail: the Django app in `app/` pushes changes, and this package reads pages from it."""
