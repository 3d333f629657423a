"""The log stage: what became of visitors' questions, kept where whoever runs the site can read it."""
