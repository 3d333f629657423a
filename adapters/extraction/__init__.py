"""Text out of office files, PDFs and mails, in a process of its own."""
