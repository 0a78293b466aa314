"""The files with which a client finds the cloud: `clouds.yaml` and `openrc`, both readable by their owner only.

They hold passwords. Names of users and projects are those that a new cloud has (embedded identity makes them).
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from kilonova.cmd import os_cloud
from kilonova.cmd.state_dir import write_private
from kilonova.conf.all_in_one import Secrets

REGION = "RegionOne"
FIRST_SERVER = ("m1.nano", "cirros-0.6.3-x86_64-disk", "private")
"""Flavor, image and network of the create command that `kilonova up` shows; a new cloud has them."""


def write_client_files(directory: Path, base_url: str, secrets: Secrets) -> None:
    """Write clouds.yaml (clouds kilonova, kilonova-admin, kilonova-system-admin) and openrc (as kilonova)."""
    import yaml

    document = {"clouds": _clouds(f"{base_url}/identity", secrets)}
    heading = "# Written by `kilonova up` at each start; changes made here are lost.\n"
    write_private(directory / "clouds.yaml", heading + yaml.safe_dump(document, sort_keys=False))
    write_private(directory / "openrc", heading + _openrc(base_url, secrets))


def _clouds(auth_url: str, secrets: Secrets) -> dict[str, Any]:
    def cloud(username: str, password: str, **scope: str) -> dict[str, Any]:
        auth = {"auth_url": auth_url, "username": username, "password": password, "user_domain_id": "default"}
        return {
            "auth": auth | scope,
            "region_name": REGION,
            "identity_api_version": "3",
        }

    project = {"project_domain_id": "default"}
    return {
        "kilonova": cloud("demo", secrets.demo_password, project_name="demo", **project),
        os_cloud.ADMIN: cloud("admin", secrets.admin_password, project_name="admin", **project),
        "kilonova-system-admin": cloud("admin", secrets.admin_password, system_scope="all"),
    }


def _openrc(base_url: str, secrets: Secrets) -> str:
    variables = {
        "OS_AUTH_TYPE": "password",
        "OS_AUTH_URL": f"{base_url}/identity",
        "OS_IDENTITY_API_VERSION": "3",
        "OS_REGION_NAME": REGION,
        "OS_USERNAME": "demo",
        "OS_PASSWORD": secrets.demo_password,
        "OS_PROJECT_NAME": "demo",
        "OS_USER_DOMAIN_ID": "default",
        "OS_PROJECT_DOMAIN_ID": "default",
    }
    lines = ["unset OS_CLOUD OS_SYSTEM_SCOPE OS_TOKEN"]
    lines += [f"export {name}={shlex.quote(value)}" for name, value in variables.items()]
    host = urlsplit(base_url).hostname
    lines += [f"export {name}={shlex.quote(str(host))}${{{name}:+,${name}}}" for name in ("NO_PROXY", "no_proxy")]
    return "\n".join(lines) + "\n"
