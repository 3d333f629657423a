"""The rebuild: a new index of a site beside the live one, verified, then promoted."""
