"""Language models behind OpenAI's API, and a scripted one for tests."""
