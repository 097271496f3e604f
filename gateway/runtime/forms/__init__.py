"""Forms asked field by field: reading answers, and what is asked next. Pure; stores nothing."""
