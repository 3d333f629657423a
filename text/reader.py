"""Versions of what reads pages. A test tells when a sample of pages reads differently and its version stays."""

from __future__ import annotations

# Of what makes text of HTML and of attachments; kept with every page. Counts up when pages are to be read anew.
READER = "2"
# Of what finds the content of a web page. Counts up when pages are to be fetched anew.
FINDER = 2
