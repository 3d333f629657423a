"""The judge stage: a sample of what visitors are answered, judged while the site runs."""
