"""Tools that a site adds to those a model may call: Python functions, and operations of web services."""
