"""Telegram, on python-telegram-bot and telegramify-markdown."""
