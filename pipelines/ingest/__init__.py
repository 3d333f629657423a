"""From a save to a searchable page: accept, chunk, embed, index, receipts."""
