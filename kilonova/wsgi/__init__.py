"""The HTTP services for another WSGI server: `kilonova.wsgi.compute`, `.placement` and `.metadata`, each `application`.

They read the configuration file that the environment variable KILONOVA_CONFIG names.
"""
