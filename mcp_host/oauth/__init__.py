"""Signing in to servers that want OAuth: tokens kept and renewed unasked, logins by a person alone."""
