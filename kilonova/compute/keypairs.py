"""Key pairs of users: made or imported, shown, deleted. Servers keep their copy of the public key."""

from __future__ import annotations

import base64
import binascii
import hashlib
from typing import Any

from kilonova.compute import quotas
from kilonova.compute.world import World
from kilonova.core.context import Context
from kilonova.core.errors import Conflict, Invalid, NotFound, OverQuota
from kilonova.db.queries import keypairs


class KeypairUnusable(Invalid):
    """A server names a key pair its user does not have."""

    code, message = "keypair_unusable", "Invalid key_name provided: there is no key pair {name!r}."


class KeypairNotFound(NotFound):
    """The user has no such key pair."""

    code, message = "keypair_not_found", "Keypair {name} not found for user {user}"


class KeypairExists(Conflict):
    """The user has one of that name."""

    code, message = "keypair_exists", "Key pair '{name}' already exists."


class KeypairMarkerNotFound(Invalid):
    """The marker is no key pair of the user's."""

    code, message = "marker_not_found", "Marker {marker} could not be found."


class PublicKeyInvalid(Invalid):
    """The public key cannot be read."""

    code, message = "public_key_invalid", "Keypair data is invalid: {why}"


class KeypairsOverQuota(OverQuota):
    """The user has as many as the quota allows."""

    code = "keypairs_over_quota"
    message = (
        "Quota exceeded, too many key pairs: the limit of key_pairs is {limit}. "
        "An administrator raises it with: openstack quota set --key-pairs <number> {project}"
    )


def for_boot(world: World, ctx: Context, name: str | None) -> Any | None:
    """The key pair (a row) that a new server gets; None when none is named."""
    if not name:
        return None
    found = keypairs.get(world.cells.api, ctx.user_id, name)
    if found is None:
        raise KeypairUnusable(name=name)
    return found


def find(world: World, user_id: str, name: str) -> Any:
    """A user's key pair. KeypairNotFound."""
    found = keypairs.get(world.cells.api, user_id, name)
    if found is None:
        raise KeypairNotFound(name=name, user=user_id)
    return found


def page(world: World, user_id: str, limit: int, marker: str | None) -> list[Any]:
    """A page of a user's key pairs, by name. KeypairMarkerNotFound."""
    if marker is not None and keypairs.get(world.cells.api, user_id, marker) is None:
        raise KeypairMarkerNotFound(marker=marker)
    return keypairs.page(world.cells.api, user_id, limit, marker or "") if limit else []


def create(
    world: World, ctx: Context, user_id: str, name: str, kind: str, public_key: str | None
) -> tuple[Any, str | None]:
    """Import a public key, or make a pair; answers (row, private key if one was made).

    kind: ssh or x509. The quota is looked at before the key (errors.md 12).
    """
    api = world.cells.api
    with api.read() as connection:
        limit = quotas.limits_of(connection, world.settings, ctx.project_id)["key_pairs"]
        if 0 <= limit <= keypairs.count(connection, user_id):
            raise KeypairsOverQuota(limit=limit, project=ctx.project_id)
    private = None
    if public_key is None:
        private, public_key, fingerprint = _made(kind, user_id)
    else:
        public_key = public_key.strip()
        fingerprint = _fingerprint(kind, public_key)
    row = {"user_id": user_id, "name": name, "type": kind, "public_key": public_key, "fingerprint": fingerprint}
    try:
        with api.write() as connection:
            keypairs.insert(connection, row)
    except Exception as error:
        if not keypairs.taken(error):
            raise
        raise KeypairExists(name=name) from None
    return find(world, user_id, name), private


def delete(world: World, user_id: str, name: str) -> None:
    """Remove a key pair. KeypairNotFound."""
    with world.cells.api.write() as connection:
        if not keypairs.delete(connection, user_id, name):
            raise KeypairNotFound(name=name, user=user_id)


def _colons(digest: str) -> str:
    return ":".join(digest[index : index + 2] for index in range(0, len(digest), 2))


def _fingerprint(kind: str, public_key: str) -> str:
    """Colon-separated MD5 of an ssh key, SHA-1 of a certificate. PublicKeyInvalid."""
    return _certificate_fingerprint(public_key) if kind == "x509" else _ssh_fingerprint(public_key)


def _ssh_fingerprint(public_key: str) -> str:
    from cryptography.hazmat.primitives.serialization import load_ssh_public_key

    words = public_key.split(None, 2)
    try:
        data = base64.b64decode(words[1], validate=True)
    except (IndexError, ValueError, binascii.Error):
        raise PublicKeyInvalid(why="it is not of the form '<type> <base64> [comment]'.") from None
    try:
        if not words[0].startswith("sk-"):  # hardware-backed keys are not parsed by the library
            load_ssh_public_key(public_key.encode())
    except Exception:
        raise PublicKeyInvalid(why="it is not an SSH public key.") from None
    return _colons(hashlib.md5(data, usedforsecurity=False).hexdigest())


def _certificate_fingerprint(public_key: str) -> str:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes

    try:
        certificate = x509.load_pem_x509_certificate(public_key.encode())
    except ValueError:
        raise PublicKeyInvalid(why="it is not a certificate in PEM form.") from None
    return _colons(certificate.fingerprint(hashes.SHA1()).hex())  # the wire format's choice


def _made(kind: str, user_id: str) -> tuple[str, str, str]:
    from kilonova.compute import keypair_making

    made = keypair_making.x509_pair(user_id) if kind == "x509" else keypair_making.ssh_pair()
    return made[0], made[1], _fingerprint(kind, made[1])
