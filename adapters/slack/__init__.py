"""Slack, on slack-bolt."""
