"""Texts of any kind: languages, sentences, words, HTML, Markdown, differences."""
