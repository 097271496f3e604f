"""Everything the first version keeps."""

import base64
import secrets

from alembic import op

from store.migrations.first_schema import SCHEMA

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create all tables, and the rows an empty store is born with."""
    connection = op.get_bind()
    for statement in SCHEMA.split(";\n"):
        if statement.strip():
            connection.exec_driver_sql(statement)
    install = base64.b32encode(secrets.token_bytes(16)).decode("ascii").rstrip("=").lower()
    for key, value in (
        ("application", "hermes-gateway"),
        ("schema_version", "1"),
        ("install_id", install),
        ("epoch", "0"),
        ("events_pruned_to", "0"),
    ):
        connection.exec_driver_sql("INSERT INTO meta (key, value) VALUES (?, ?)", (key, value))
    connection.exec_driver_sql("INSERT INTO event (id, kind, at) VALUES (1, 'start', 0)")
