"""The answer stage: a model by the site's strategy, or quotes, with citations that are checked."""
