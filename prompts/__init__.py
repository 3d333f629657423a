"""What is said to the model and to the visitor, as data, and the strict loader of it."""
