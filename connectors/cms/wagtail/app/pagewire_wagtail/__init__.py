"""Sends every change of a Wagtail site to Pagewire.

    signal ─▶ mark (same transaction as the change) ─▶ on commit: kick ─▶ courier ─▶ signed webhook ─▶ Pagewire

A mark only says that a page may have changed. The courier reads the page's current state when it delivers. So a page
has one record, however often it is saved while Pagewire is down, and missed or reordered events do no harm.
"""
