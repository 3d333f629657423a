"""Documentation; `generate.py` writes the reference pages that follow from the code."""
