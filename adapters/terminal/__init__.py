"""The terminal as a platform: one person, one chat, lines in and lines out."""
