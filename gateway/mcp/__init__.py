"""A site's MCP server (https://modelcontextprotocol.io): search, answers and pages for assistants."""
