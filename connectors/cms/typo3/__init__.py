"""TYPO3: the extension in `extension/` sends the addresses of changed pages, which `connectors/cms/sitemap` reads."""
