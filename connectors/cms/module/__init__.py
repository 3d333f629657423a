"""Reads a CMS through a module of ours inside it, which answers signed requests: Wagtail, Drupal."""
