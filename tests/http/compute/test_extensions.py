"""/extensions: 99 names that never change, and one more in the legacy API."""

from __future__ import annotations

from tests.http.compute.cloud import Client

LEGACY = "/compute/v2"


def test_the_list_is_sorted_and_the_same_at_every_version(demo: Client) -> None:
    found = demo.get("/extensions")["extensions"]
    aliases = [extension["alias"] for extension in found]
    assert len(aliases) == 99
    assert aliases == sorted(aliases)
    assert found == demo.at("latest").get("/extensions")["extensions"]
    assert found[0] == {
        "alias": "NMN", "name": "Multinic", "description": found[0]["description"], "links": [],
        "namespace": "http://docs.openstack.org/compute/ext/fake_xml", "updated": "2014-12-03T00:00:00Z",
    }  # fmt: skip


def test_one_by_its_alias(demo: Client) -> None:
    assert demo.get("/extensions/os-quota-sets")["extension"]["name"] == "Quotas"
    demo.refused(404, "GET", "/extensions/os-magic")
    demo.refused(404, "GET", "/extensions/OS-EXT-VIF-NET")


def test_the_legacy_api_has_one_more(demo: Client) -> None:
    assert len(demo.get("/extensions", service=LEGACY)["extensions"]) == 100
    assert demo.get("/extensions/OS-EXT-VIF-NET", service=LEGACY)["extension"]["name"] == "ExtendedVIFNet"
