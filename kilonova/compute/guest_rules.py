"""Whether flavor and image together describe a guest that can be: what a new server is refused for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kilonova.core.errors import Invalid
from kilonova.core.numa.wanted import wanted
from kilonova.core.pci.requests import Alias, PciRequest, of_flavor
from kilonova.core.request_spec import FlavorSpec, ImageSpec

_TRUE: Final = frozenset({"1", "t", "true", "on", "y", "yes"})
_FLAGS: Final = (
    "hw:pmu", "hw:vif_multiqueue_enabled", "hw:virtio_packed_ring", "hw:ephemeral_encryption", "hw:mem_encryption",
)  # fmt: skip
_WORDS: Final = (
    "hw:ephemeral_encryption_format", "hw:mem_encryption_model", "hw:tpm_version", "hw:tpm_model",
    "hw:maxphysaddr_mode", "hw:sound_model", "hw:usb_model", "hw:redirected_usb_ports", "os:secure_boot",
)  # fmt: skip


class GuestImpossible(Invalid):
    """Flavor and image contradict each other, or ask for what does not go together."""

    code, message = "guest_impossible", "{why}"


def check(flavor: FlavorSpec, image: ImageSpec, aliases: Mapping[str, Alias]) -> tuple[PciRequest, ...]:
    """The PCI devices that such a server asks for.

    GuestImpossible, TopologyInvalid, AliasUnknown, AliasRequestInvalid.
    """
    specs, properties = flavor.extra_specs, image.properties
    wanted(flavor.vcpus, flavor.memory_mb, specs, properties)
    for key in _FLAGS:
        if _both(specs, properties, key) and _flag(specs[key]) != _flag(properties[_property(key)]):
            _differ(key)
    for key in _WORDS:
        if _both(specs, properties, key) and _text(specs[key]) != _text(properties[_property(key)]):
            _differ(key)
    _check_serial_ports(specs, properties)
    _check_tpm(specs, properties)
    _check_encrypted_memory(specs, properties)
    return of_flavor(specs, properties, aliases)


def _property(key: str) -> str:
    return key.replace(":", "_", 1)


def _both(specs: Mapping[str, str], properties: Mapping[str, Any], key: str) -> bool:
    return key in specs and properties.get(_property(key)) is not None


def _either(specs: Mapping[str, str], properties: Mapping[str, Any], key: str) -> str:
    return _text(specs.get(key) or properties.get(_property(key)) or "")


def _text(value: Any) -> str:
    return str(value).strip().lower()


def _flag(value: Any) -> bool:
    return _text(value) in _TRUE


def _differ(key: str) -> None:
    raise GuestImpossible(why=f"The flavor's {key} and the image's {_property(key)} must be equal.")


def _check_serial_ports(specs: Mapping[str, str], properties: Mapping[str, Any]) -> None:
    most, asked = specs.get("hw:serial_port_count"), properties.get("hw_serial_port_count")
    if most is not None and asked is not None and int(asked) > int(most):
        raise GuestImpossible(why=f"The image's hw_serial_port_count {asked} is above the flavor's limit of {most}.")


def _check_tpm(specs: Mapping[str, str], properties: Mapping[str, Any]) -> None:
    model, version = (_either(specs, properties, key) for key in ("hw:tpm_model", "hw:tpm_version"))
    if model == "tpm-crb" and version != "2.0":
        raise GuestImpossible(why="The TPM model tpm-crb needs hw:tpm_version 2.0.")


def _check_encrypted_memory(specs: Mapping[str, str], properties: Mapping[str, Any]) -> None:
    if not _flag(_either(specs, properties, "hw:mem_encryption")):
        return
    model = _either(specs, properties, "hw:mem_encryption_model")
    machine = _text(properties.get("hw_machine_type") or "q35")
    for lacking, need in (
        (_text(properties.get("hw_firmware_type") or "") != "uefi", "hw_firmware_type=uefi"),
        ("q35" not in machine, "a q35 machine in hw_machine_type"),
        (model in ("amd-sev-snp", "intel-tdx") and not _flag(properties.get("hw_firmware_stateless")),
         "hw_firmware_stateless=true"),
        (model == "intel-tdx" and _text(properties.get("hw_video_model")) != "none", "hw_video_model=none"),
    ):  # fmt: skip
        if lacking:
            raise GuestImpossible(why=f"Encrypted memory ({model or 'amd-sev'}) needs an image with {need}.")
