"""Text processing: languages, sentences, words, HTML, Markdown, diffs."""
