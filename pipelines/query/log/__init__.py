"""The log stage: the outcomes of visitors' questions, kept where operators can read them."""
