"""What operators change while the site runs: texts, prompts, settings, privacy."""
