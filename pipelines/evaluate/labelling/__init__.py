"""Labels of people for answers of the question log: who labels what, who agrees, and what becomes of it."""
