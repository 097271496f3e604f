"""The statements of the read ports, SQLite dialect: text only, so readers of every kind share them.

Parameters are named. What may be left out is a fragment that starts with AND; ends with LIMIT what
could be long. CROSS JOIN keeps the written order: the planner has no statistics to choose by.
"""
