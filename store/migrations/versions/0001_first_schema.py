"""Everything the first version keeps."""

from alembic import op

from store.migrations.first_schema import statements

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create all tables, and the rows an empty store is born with."""
    connection = op.get_bind()
    for statement, values in statements():
        connection.exec_driver_sql(statement, values)
