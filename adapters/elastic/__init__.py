"""The only code that connects to Elasticsearch.

One index per site and generation behind an alias (`indexes.py`), written in coalesced bulks (`writer.py`), read
page by page (`pages.py`) and searched (`search.py`).
"""
