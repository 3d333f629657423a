"""Delivers visitors' messages to the people of a site: to a signed webhook, or as mail."""
