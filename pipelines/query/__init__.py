"""From a question to a cited answer: rephrase, retrieve, answer."""
