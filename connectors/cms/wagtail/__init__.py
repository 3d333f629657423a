"""Wagtail: the Django app in `app/` pushes; what it answers when asked is read here."""
