#!/usr/bin/env python
"""The Wagtail site that the tests drive; runs in .venv-wagtail, never in ours."""

import os
import sys

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "townsite.settings")
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)
