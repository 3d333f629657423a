"""OpenAI's chat completions, answered from a site's pages."""
