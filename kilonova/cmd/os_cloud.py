"""Whose credentials a command uses: a cloud of `clouds.yaml`, or the `OS_*` variables. As the `openstack` command does.

Files are looked for where that command looks: OS_CLIENT_CONFIG_FILE, here, ~/.config/openstack, /etc/openstack;
`secure.yaml` beside `clouds.yaml` adds what is secret.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kilonova.core import errors

if TYPE_CHECKING:
    from kilonova.http.transport import SocketTransport

ADMIN: Final = "kilonova-admin"
"""The administrator's cloud in the clouds.yaml that `kilonova up` writes."""
FOLDERS: Final = (Path("."), Path("~/.config/openstack"), Path("/etc/openstack"))
_TIMEOUT: Final = 60


class NoSuchCloud(errors.NotFound):
    code, message = "no_such_cloud", "There is no cloud {cloud} in {files}."


class CloudFileUnusable(errors.Invalid):
    code, message = "cloud_file_unusable", "{path} cannot be used: {reason}."


class NoCredentials(errors.Invalid):
    code = "no_credentials"
    message = "Say who is asking: --os-cloud NAME for a cloud of clouds.yaml, or OS_AUTH_URL, OS_USERNAME and so on."


class CredentialsIncomplete(errors.Invalid):
    code, message = "credentials_incomplete", "The credentials of {cloud} cannot be used: {reason}."


@dataclass(frozen=True)
class Login:
    """A keystoneauth session, and what the credentials say beside it."""

    session: Any
    auth_url: str
    region: str | None


def login(cloud: str | None, environ: Mapping[str, str] = os.environ) -> Login:
    """The session of a cloud (`OS_CLOUD` when none is named), or of the variables. Nothing is sent yet."""
    cloud = cloud or environ.get("OS_CLOUD")
    if cloud:
        return _login(f"the cloud {cloud}", _cloud(cloud, environ))
    if not environ.get("OS_AUTH_URL"):
        raise NoCredentials
    return _login("the environment", _of_environment(environ))


def transport(login: Login) -> SocketTransport:
    """With the certificates of a login."""
    from kilonova.http.transport import SocketTransport

    verify: Any = login.session.verify
    cert: tuple[str, ...] = login.session.cert or ()
    return SocketTransport(
        insecure=verify is False, cafile=verify if isinstance(verify, str) else None,
        certfile=cert[0] if cert else None, keyfile=cert[1] if len(cert) > 1 else None,
    )  # fmt: skip


def _login(whose: str, settings: Mapping[str, Any]) -> Login:
    from keystoneauth1 import exceptions, loading, session

    auth: dict[str, Any] = dict(settings.get("auth") or {})
    kind = settings.get("auth_type") or "password"
    try:
        loader = loading.get_plugin_loader(kind)
        known = {option.dest for option in loader.get_options()}
        plugin = loader.load_from_options(**{name: value for name, value in auth.items() if name in known})
    except exceptions.ClientException as error:
        raise CredentialsIncomplete(cloud=whose, reason=" ".join(str(error).split()).rstrip(".")) from error
    if not auth.get("auth_url"):
        raise CredentialsIncomplete(cloud=whose, reason="they name no auth_url")
    verify: Any = settings.get("verify", True)
    if verify and settings.get("cacert"):
        verify = str(Path(settings["cacert"]).expanduser())
    cert = tuple(filter(None, (settings.get("cert"), settings.get("key")))) or None
    made = session.Session(auth=plugin, verify=verify, cert=cert, timeout=_TIMEOUT)
    return Login(made, str(auth["auth_url"]), settings.get("region_name"))


def _of_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    values = {name.removeprefix("OS_").lower(): value for name, value in environ.items() if name.startswith("OS_")}
    auth = {name: value for name, value in values.items() if value}
    if "tenant_name" in auth:
        auth.setdefault("project_name", auth["tenant_name"])
    return {
        "auth": auth,
        "auth_type": auth.get("auth_type") or ("token" if "token" in auth else "password"),
        "region_name": auth.get("region_name"),
        "verify": auth.get("insecure", "").lower() not in ("1", "true", "yes"),
        "cacert": auth.get("cacert"),
        "cert": auth.get("cert"),
        "key": auth.get("key"),
    }


def _cloud(name: str, environ: Mapping[str, str]) -> dict[str, Any]:
    named = environ.get("OS_CLIENT_CONFIG_FILE")
    places = [Path(named)] if named else [folder.expanduser() / "clouds.yaml" for folder in FOLDERS]
    path = next((place for place in places if place.exists()), None)
    if path is None:
        raise NoSuchCloud(cloud=name, files=" or ".join(map(str, places)))
    found = _clouds(path).get(name)
    if found is None:
        raise NoSuchCloud(cloud=name, files=str(path))
    if "profile" in found or "cloud" in found:
        reason = f"the cloud {name} leans on a vendor's profile, which is not read here: write its auth_url out"
        raise CloudFileUnusable(path=str(path), reason=reason)
    secret = path.with_name("secure.yaml")
    return _merged(found, _clouds(secret).get(name) or {}) if secret.exists() else dict(found)


def _clouds(path: Path) -> dict[str, Any]:
    import yaml

    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise CloudFileUnusable(path=str(path), reason=(error.strerror or str(error)).lower()) from error
    except (yaml.YAMLError, UnicodeError) as error:
        raise CloudFileUnusable(path=str(path), reason="it is no YAML") from error
    clouds = document.get("clouds") if isinstance(document, dict) else None
    if not isinstance(clouds, dict) or not all(isinstance(cloud, dict) for cloud in clouds.values()):
        raise CloudFileUnusable(path=str(path), reason="it has no `clouds` with settings by name")
    return clouds


def _merged(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(one)
    for name, value in other.items():
        both = isinstance(value, dict) and isinstance(merged.get(name), dict)
        merged[name] = _merged(merged[name], value) if both else value
    return merged
