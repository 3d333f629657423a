"""A site's pages, pushed by a CMS or read from it, from a folder or from a website."""
