"""Identity: who there is, what they may do where, tokens and the catalogue, in the shapes of Keystone's v3 API."""
