"""What a guest's features need of a host, as resources and traits: pinned CPUs, encrypted memory, TPM, firmware …

A feature is asked for by an extra spec `hw:x` of the flavor or, where that is absent, by the image property `hw_x`.
The API has refused contradictions; here the flavor's word counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from kilonova.core.numa.wanted import wanted
from kilonova.core.request_spec import RequestSpec

_TRUE = frozenset({"1", "t", "true", "on", "y", "yes"})


@dataclass(frozen=True, slots=True)
class Need:
    """What one feature adds to the unnamed group."""

    resources: Mapping[str, int] = field(default_factory=dict)
    required: frozenset[str] = frozenset()
    forbidden: frozenset[str] = frozenset()


NOTHING = Need()


def setting(spec: RequestSpec, key: str) -> str | None:
    """The flavor's extra spec `family:name`, else the image's property `family_name`, as lower-case text."""
    value = spec.flavor.extra_specs.get(key)
    if value is None:
        value = spec.image.properties.get(key.replace(":", "_", 1))
    return None if value is None else str(value).strip().lower()


def wants(spec: RequestSpec, key: str) -> bool:
    """Whether the setting is there and true."""
    return is_true(setting(spec, key))


def is_true(value: object) -> bool:
    """Whether a setting is one of the words for yes."""
    return str(value).strip().lower() in _TRUE


def requires(*traits: str) -> Need:
    """These traits."""
    return Need(required=frozenset(traits))


def needs(spec: RequestSpec, *, pinned: bool = True) -> list[Need]:
    """What the features of the request need. pinned: False leaves out what pinned CPUs need."""
    features = (*_PINNING, *_FEATURES) if pinned else _FEATURES
    return [need for feature in features if (need := feature(spec)) is not NOTHING]


def pins_all_cpus(spec: RequestSpec) -> bool:
    """Whether each virtual CPU has a host CPU of its own."""
    return setting(spec, "hw:cpu_policy") == "dedicated"


def _pinned_cpus(spec: RequestSpec) -> Need:
    if setting(spec, "hw:cpu_policy") not in ("dedicated", "mixed"):
        return NOTHING
    flavor = spec.flavor
    topology = wanted(flavor.vcpus, flavor.memory_mb, flavor.extra_specs, spec.image.properties)
    if topology is None:
        return NOTHING
    floating = sum(cell.cpuset.bit_count() for cell in topology.cells)
    return Need({"PCPU": topology.dedicated_cpus} | ({"VCPU": floating} if floating else {}))


def _threads(spec: RequestSpec) -> Need:
    policy = setting(spec, "hw:cpu_thread_policy")
    trait = frozenset({"HW_CPU_HYPERTHREADING"})
    if policy == "isolate":
        return Need(forbidden=trait)
    return Need(required=trait) if policy == "require" else NOTHING


_ENCRYPTION = {
    "amd-sev": "HW_CPU_X86_AMD_SEV",
    "amd-sev-es": "HW_CPU_X86_AMD_SEV_ES",
    "amd-sev-snp": "HW_CPU_X86_AMD_SEV_SNP",
    "intel-tdx": "HW_CPU_X86_INTEL_TDX",
}


def _encrypted_memory(spec: RequestSpec) -> Need:
    if not wants(spec, "hw:mem_encryption"):
        return NOTHING
    model = setting(spec, "hw:mem_encryption_model") or "amd-sev"
    return Need({"MEM_ENCRYPTION_CONTEXT": 1}, frozenset({_ENCRYPTION.get(model, _ENCRYPTION["amd-sev"])}))


def _persistent_memory(spec: RequestSpec) -> Need:
    labels = spec.flavor.extra_specs.get("hw:pmem")
    if not labels:
        return NOTHING
    counted = Counter(label.strip().upper() for label in labels.split(",") if label.strip())
    return Need({f"CUSTOM_PMEM_NAMESPACE_{label}": amount for label, amount in counted.items()})


def _tpm(spec: RequestSpec) -> Need:
    version = setting(spec, "hw:tpm_version")
    if version is None:
        return NOTHING
    model = "CRB" if setting(spec, "hw:tpm_model") == "tpm-crb" else "TIS"
    return requires(f"COMPUTE_SECURITY_TPM_{version.replace('.', '_')}", f"COMPUTE_SECURITY_TPM_{model}")


def _pci_affinity(spec: RequestSpec) -> Need:
    socket = setting(spec, "hw:pci_numa_affinity_policy") == "socket"
    return requires("COMPUTE_SOCKET_PCI_NUMA_AFFINITY") if socket else NOTHING


def _secure_boot(spec: RequestSpec) -> Need:
    return requires("COMPUTE_SECURITY_UEFI_SECURE_BOOT") if setting(spec, "os:secure_boot") == "required" else NOTHING


_ADDRESS_SPACES = {"passthrough": "COMPUTE_ADDRESS_SPACE_PASSTHROUGH", "emulate": "COMPUTE_ADDRESS_SPACE_EMULATED"}


def _address_space(spec: RequestSpec) -> Need:
    trait = _ADDRESS_SPACES.get(setting(spec, "hw:maxphysaddr_mode") or "")
    return requires(trait) if trait else NOTHING


def _stateless_firmware(spec: RequestSpec) -> Need:
    properties = spec.image.properties
    stateless = str(properties.get("hw_firmware_stateless", "")).lower() in _TRUE
    uefi = properties.get("hw_firmware_type") == "uefi"
    return requires("COMPUTE_SECURITY_STATELESS_FIRMWARE") if stateless and uefi else NOTHING


_PINNING: tuple[Callable[[RequestSpec], Need], ...] = (_pinned_cpus, _threads)
_FEATURES: tuple[Callable[[RequestSpec], Need], ...] = (
    _encrypted_memory,
    _persistent_memory,
    _tpm,
    _pci_affinity,
    _secure_boot,
    _address_space,
    _stateless_firmware,
)
