"""Language models behind OpenAI's API, and one for tests that says what it is told to."""
