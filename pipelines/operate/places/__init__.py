"""Places: where the records of one site stand in a topic of all, so that who needs only these reads only these."""
