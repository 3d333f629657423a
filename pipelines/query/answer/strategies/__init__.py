"""Ways to an answer; which one a site takes is its setting `strategy`."""
