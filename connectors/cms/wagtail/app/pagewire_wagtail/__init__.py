"""Hands every change of a Wagtail site to Pagewire.

    signal ─▶ mark (same transaction as the change) ─▶ on commit: kick ─▶ courier ─▶ signed webhook ─▶ Pagewire

A mark says only that a page is no longer what Pagewire was told. What it is now is looked up when its turn comes:
public, with its content of that moment, or gone. So there is one line a page, however often it is saved while Pagewire
is away, and no event that is missed or comes out of order can leave the wrong thing behind.
"""
