"""Tools that a model may call on its way to an answer (pipelines.query.answer.strategies.loop)."""
