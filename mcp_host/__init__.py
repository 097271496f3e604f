"""The MCP servers people configured: connections, their tools by safe names, and who must agree."""
