"""The answer stage: a model writes by the site's strategy, or the pages are quoted; citations are checked."""
