"""The API and cell databases: tables, queries by noun, migrations. Nobody above `cells` and `workflows` sees SQL."""
