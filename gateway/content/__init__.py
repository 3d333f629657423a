"""Pages over HTTP: single saves, bulk, webhooks, and the receipts that editors read."""
