"""Reads configuration files into a private oslo.config object; says what of them nobody will look at.

One object per application, because groups of one name mean different things in Compute and in Placement. The global
object of oslo.config is never used. Whoever reads an option many times takes it into frozen settings at start.
"""

from __future__ import annotations

import json
import logging
import re
import socket
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from oslo_config import cfg

from kilonova.conf import (
    api,
    compute,
    database,
    default,
    embedded,
    filter_scheduler,
    middleware,
    notifications,
    pci,
    placement_api,
    prometheus,
    quota,
    scheduler,
    services,
    simulated,
)
from kilonova.core import log

LOG = logging.getLogger(__name__)

Options = Mapping[str, tuple[cfg.Opt, ...]]

_EVERY: Options = {
    "oslo_middleware": middleware.OSLO_MIDDLEWARE,
    "cors": middleware.CORS,
    "prometheus": prometheus.OPTS,
}

COMPUTE: Options = {
    **_EVERY,
    "DEFAULT": default.OPTS,
    "api": api.OPTS,
    "api_database": database.OPTS,
    "cinder": services.CINDER,
    "cyborg": services.CYBORG,
    "embedded": embedded.OPTS,
    "compute": compute.OPTS,
    "database": database.OPTS,
    "filter_scheduler": filter_scheduler.OPTS,
    "glance": services.GLANCE,
    "keystone": services.KEYSTONE,
    "metrics": filter_scheduler.METRICS,
    "pci": pci.OPTS,
    "neutron": services.NEUTRON,
    "notifications": notifications.OPTS,
    "oslo_messaging_notifications": notifications.MESSAGING,
    "placement": services.PLACEMENT,
    "quota": quota.OPTS,
    "scheduler": scheduler.OPTS,
    "service_user": services.SERVICE_USER,
    "simulated": simulated.OPTS,
    "workarounds": filter_scheduler.WORKAROUNDS,
}

PLACEMENT: Options = {
    **_EVERY,
    "DEFAULT": (default.STATE_PATH,),
    "api": placement_api.API,
    "placement": placement_api.OPTS,
    "placement_database": database.OPTS,
}

APPLICATIONS: Mapping[str, Options] = {"compute": COMPUTE, "placement": PLACEMENT}

# Groups whose options the libraries register themselves, some only when they are used.
_LIBRARY_GROUPS = frozenset((
    "keystone_authtoken", "oslo_policy", "oslo_limit",
    "oslo_messaging_rabbit", "oslo_messaging_metrics", "oslo_messaging_tracing",
))  # fmt: skip
_NOT_NEEDED: Mapping[tuple[str, str], str] = {
    ("placement_database", "sync_on_startup"): "every start brings the tables up to date",
    ("workarounds", "optimize_for_wide_provider_trees"): "the search for candidates is always pruned",
}
"""Options of OpenStack's Placement that change nothing here, and why."""

_LIBRARY_DEFAULTS = frozenset(("control_exchange", "executor_thread_pool_size", "rpc_ping_enabled"))
_CREDENTIALS = frozenset((
    "auth_type", "auth_section", "auth_url", "system_scope", "domain_id", "domain_name", "project_id", "project_name",
    "project_domain_id", "project_domain_name", "trust_id", "default_domain_id", "default_domain_name", "user_id",
    "username", "user_domain_id", "user_domain_name", "password", "application_credential_id",
    "application_credential_secret", "application_credential_name",
))  # fmt: skip


class ConfigError(ValueError):
    """The configuration cannot be used; the text is one sentence for the operator."""


def load(
    files: Iterable[str | Path] = (),
    overrides: Mapping[str, Any] | None = None,
    *,
    application: str = "compute",
    warn: bool = True,
) -> cfg.ConfigOpts:
    """The options of an application: defaults, then the files in order, then `overrides` (`"group.name"` or `"name"`).

    With `warn`, options of the files that have no effect are logged once each. ConfigError names the file or option
    that is wrong; every declared option is checked here, not when it is first read.
    """
    paths = [str(path) for path in files]
    conf = cfg.ConfigOpts()
    log.register(conf)
    rows = APPLICATIONS[application]
    for group, options in rows.items():
        conf.register_opts(options, group=None if group == "DEFAULT" else group)
    try:
        conf([], project="kilonova", default_config_files=paths, default_config_dirs=[])
    except (cfg.ConfigFileParseError, cfg.ConfigFilesNotFoundError, cfg.ConfigFilesPermissionDeniedError) as error:
        raise ConfigError(f"The configuration cannot be read: {' '.join(str(error).split())}") from None
    if application == "compute":
        conf.set_default("host", socket.gethostname())
        conf.set_default("my_ip", _my_ip())
    for key, value in (overrides or {}).items():
        group, _, name = key.rpartition(".")
        _override(conf, group or None, name, value)
    _check(conf, rows)
    if warn:
        warn_without_effect(paths, application=application)
    return conf


def warn_without_effect(files: Iterable[str | Path], *, application: str = "compute") -> None:
    """Log once what of the files nobody reads; for a caller that sets up logging only after `load(…, warn=False)`."""
    for line in without_effect([str(path) for path in files], APPLICATIONS[application]):
        LOG.warning("%s", line)


def _override(conf: cfg.ConfigOpts, group: str | None, name: str, value: Any) -> None:
    try:
        conf.set_override(name, value, group=group)
    except (ValueError, cfg.NoSuchOptError, cfg.NoSuchGroupError) as error:
        raise ConfigError(f"{f'[{group}] ' if group else ''}{name} cannot be {value!r}: {error}") from None


def _check(conf: cfg.ConfigOpts, rows: Options) -> None:
    for group, options in rows.items():
        values = conf if group == "DEFAULT" else conf[group]
        for option in options:
            try:
                getattr(values, option.dest)
            except (ValueError, cfg.Error) as error:
                raise ConfigError(f"[{group}] {option.name} cannot be used: {_plain(error)}") from None


def _plain(error: Exception) -> str:
    """oslo.config's words without its internal record of the place, but with the file."""
    text = " ".join(str(error).split())
    text = re.sub(r"from LocationInfo\(.*?detail='([^']*)'\)", r"in \1", text)
    return text.replace("Value for option ", "the value of ")


def without_effect(files: Iterable[str], rows: Options) -> list[str]:
    """One sentence for each option in the files that Kilonova does not read, and whether Nova would know it."""
    known = json.loads(Path(__file__).with_name("known_options.json").read_bytes())
    declared = {(group, option.dest) for group, options in _all_rows(rows).items() for option in options}
    declared |= {("DEFAULT", name) for name in _log_options()}
    lines: list[str] = []
    for group, name in _named_in(files):
        key = name.replace("-", "_")
        if (group, key) in declared or group in _LIBRARY_GROUPS or (group == "DEFAULT" and key in _LIBRARY_DEFAULTS):
            continue
        if key in _CREDENTIALS and group in _CREDENTIAL_GROUPS:
            continue
        where = f"Option {name} in [{group}]"
        if (group, key) in _NOT_NEEDED:
            lines.append(f"{where} is not needed and has no effect: {_NOT_NEEDED[group, key]}.")
        elif key in known.get(group, ()) or group.startswith(("oslo_", "healthcheck", "profiler", "cache")):
            lines.append(f"{where} is known to Nova, not read by Kilonova; it has no effect.")
        else:
            lines.append(f"{where} is unknown; is it a misspelling?")
    return lines


_CREDENTIAL_GROUPS = frozenset(("keystone", "placement", "neutron", "cinder", "cyborg", "service_user", "glance"))


def _all_rows(rows: Options) -> Options:
    """All applications' rows: one file may configure them together."""
    merged: dict[str, tuple[cfg.Opt, ...]] = dict(rows)
    for other in APPLICATIONS.values():
        for group, options in other.items():
            merged[group] = (*merged.get(group, ()), *options)
    return merged


def _log_options() -> set[str]:
    probe = cfg.ConfigOpts()
    log.register(probe)
    probe([], project="kilonova", default_config_files=[], default_config_dirs=[])
    return set(probe)


def _named_in(files: Iterable[str]) -> list[tuple[str, str]]:
    named: dict[tuple[str, str], None] = {}
    for path in files:
        sections: dict[str, dict[str, list[str]]] = {}
        cfg.ConfigParser(path, sections).parse()
        named.update(((group, name), None) for group, options in sections.items() for name in options)
    return list(named)


def _my_ip() -> str:
    """The address of the interface with the default route; nothing is sent. Loopback where there is none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
            return str(probe.getsockname()[0])
        except OSError:
            return "127.0.0.1"
