"""Places: offsets of one site's records in a topic of all sites, so that a reader reads only these."""
