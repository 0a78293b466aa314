"""What the metadata service takes from a configuration file, and what it refuses."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from kilonova.conf.load import ConfigError, load
from kilonova.metadata.settings import Settings, from_conf


def settings(tmp_path: Path, text: str) -> Settings:
    path = tmp_path / "kilonova.conf"
    path.write_text(text)
    return from_conf(load([path], warn=False))


def test_the_defaults_are_novas(tmp_path: Path) -> None:
    assert settings(tmp_path, "") == Settings(
        proxy=False, secret="", cache=15, dhcp_domain="novalocal", static={}
    )


def test_every_option_is_taken(tmp_path: Path) -> None:
    (tmp_path / "v.json").write_text('{"a": 1}')
    text = (
        "[neutron]\nservice_metadata_proxy = true\nmetadata_proxy_shared_secret = s\n[api]\ndhcp_domain =\n"
        f"metadata_cache_expiration = 0\nvendordata_jsonfile_path = {tmp_path}/v.json\n"
    )
    assert settings(tmp_path, text) == Settings(proxy=True, secret="s", cache=0, dhcp_domain="", static={"a": 1})
    assert settings(tmp_path, text + "vendordata_providers =\n").static is None


@pytest.mark.parametrize("content", [None, "{", "[]"])
def test_vendor_data_that_cannot_be_read_are_refused(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "v.json").write_text(content)
    with pytest.raises(ConfigError, match=r"v\.json"):
        settings(tmp_path, f"[api]\nvendordata_jsonfile_path = {tmp_path}/v.json\n")


def test_a_provider_that_is_not_served_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        settings(tmp_path, "[api]\nvendordata_providers = StaticJSON, DynamicJSON\n")
    assert "DynamicJSON" in caplog.text
    assert "secret" not in repr(Settings(secret="secret"))
