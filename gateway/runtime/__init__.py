"""The core at work: intake, turns, questions, commands, delivery. Knows ports, no edges."""
