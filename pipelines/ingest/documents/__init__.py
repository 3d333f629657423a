"""Documents into text: HTML into Markdown, and the attachments of a page."""
