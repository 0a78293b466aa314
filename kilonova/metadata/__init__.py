"""What guests are told about themselves, over HTTP: the metadata service that cloud-init asks.

It must not know who users are: a guest has no token. Whose request it is, a proxy's signature or the guest's address
says.
"""
