"""The wheel as its users meet it: built from this checkout, installed and run where the checkout cannot be seen."""
