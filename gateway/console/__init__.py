"""The console, `/console/`: pages for editors and operators. They use the same ports as the operators' HTTP routes."""
