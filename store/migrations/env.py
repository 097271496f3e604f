"""Alembic's entry: runs the revisions on the connection and in the transaction it is handed."""

from alembic import context

from store.tables import metadata

# The caller began the transaction and commits it, so Alembic must do neither.
context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    transactional_ddl=False,
)
with context.begin_transaction():
    context.run_migrations()
