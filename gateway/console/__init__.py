"""The console, `/console/`: pages for whoever runs a site, made from the ports of the operators' routes."""
