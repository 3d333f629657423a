"""The command `pagewire`: parses and prints; the work is done by what it calls."""
