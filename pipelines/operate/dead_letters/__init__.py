"""Dead letters: list, read, correct, redrive and drop what a stage gave up on."""
