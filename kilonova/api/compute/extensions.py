"""/extensions: the list that old clients look into before they use an operation. It never changes (errors.md 8)."""

from __future__ import annotations

from typing import Any, Final

from kilonova.core.errors import NotFound
from kilonova.http.fields import Query
from kilonova.http.op import Op, Request

_RULE = "os_compute_api:extensions"

NO_QUERY = Query(strict="2.102")

NAMES: Final = """
NMN=Multinic OS-DCF=DiskConfig OS-EXT-AZ=ExtendedAvailabilityZone OS-EXT-IMG-SIZE=ImageSize
OS-EXT-IPS=ExtendedIps OS-EXT-IPS-MAC=ExtendedIpsMac OS-EXT-SRV-ATTR=ExtendedServerAttributes
OS-EXT-STS=ExtendedStatus OS-FLV-DISABLED=FlavorDisabled OS-FLV-EXT-DATA=FlavorExtraData
OS-SCH-HNT=SchedulerHints OS-SRV-USG=ServerUsage os-access-ips=AccessIPs os-admin-actions=AdminActions
os-admin-password=AdminPassword os-agents=Agents os-aggregates=Aggregates
os-assisted-volume-snapshots=AssistedVolumeSnapshots os-attach-interfaces=AttachInterfaces
os-availability-zone=AvailabilityZone os-baremetal-ext-status=BareMetalExtStatus
os-baremetal-nodes=BareMetalNodes os-block-device-mapping=BlockDeviceMapping
os-block-device-mapping-v2-boot=BlockDeviceMappingV2Boot os-cell-capacities=CellCapacities os-cells=Cells
os-certificates=Certificates os-cloudpipe=Cloudpipe os-cloudpipe-update=CloudpipeUpdate
os-config-drive=ConfigDrive os-console-auth-tokens=ConsoleAuthTokens os-console-output=ConsoleOutput
os-consoles=Consoles os-create-backup=CreateBackup os-create-server-ext=Createserverext
os-deferred-delete=DeferredDelete os-evacuate=Evacuate os-extended-evacuate-find-host=ExtendedEvacuateFindHost
os-extended-floating-ips=ExtendedFloatingIps os-extended-hypervisors=ExtendedHypervisors
os-extended-networks=ExtendedNetworks os-extended-quotas=ExtendedQuotas
os-extended-rescue-with-image=ExtendedRescueWithImage os-extended-services=ExtendedServices
os-extended-services-delete=ExtendedServicesDelete os-extended-status=ExtendedStatus
os-extended-volumes=ExtendedVolumes os-fixed-ips=FixedIPs os-flavor-access=FlavorAccess
os-flavor-extra-specs=FlavorExtraSpecs os-flavor-manage=FlavorManage os-flavor-rxtx=FlavorRxtx
os-flavor-swap=FlavorSwap os-floating-ip-dns=FloatingIpDns os-floating-ip-pools=FloatingIpPools
os-floating-ips=FloatingIps os-floating-ips-bulk=FloatingIpsBulk os-fping=Fping
os-hide-server-addresses=HideServerAddresses os-hosts=Hosts os-hypervisor-status=HypervisorStatus
os-hypervisors=Hypervisors os-instance-actions=InstanceActions
os-instance_usage_audit_log=OSInstanceUsageAuditLog os-keypairs=Keypairs os-lock-server=LockServer
os-migrate-server=MigrateServer os-migrations=Migrations os-multiple-create=MultipleCreate os-networks=Networks
os-networks-associate=NetworkAssociationSupport os-pause-server=PauseServer os-personality=Personality
os-preserve-ephemeral-rebuild=PreserveEphemeralOnRebuild os-quota-class-sets=QuotaClasses os-quota-sets=Quotas
os-rescue=Rescue os-security-group-default-rules=SecurityGroupDefaultRules os-security-groups=SecurityGroups
os-server-diagnostics=ServerDiagnostics os-server-external-events=ServerExternalEvents
os-server-group-quotas=ServerGroupQuotas os-server-groups=ServerGroups
os-server-list-multi-status=ServerListMultiStatus os-server-password=ServerPassword
os-server-sort-keys=ServerSortKeys os-server-start-stop=ServerStartStop os-services=Services os-shelve=Shelve
os-simple-tenant-usage=SimpleTenantUsage os-suspend-server=SuspendServer os-tenant-networks=OSTenantNetworks
os-used-limits=UsedLimits os-used-limits-for-admin=UsedLimitsForAdmin os-user-data=UserData
os-user-quotas=UserQuotas os-virtual-interfaces=VirtualInterfaces
os-volume-attachment-update=VolumeAttachmentUpdate os-volumes=Volumes
"""
"""alias=name of every extension of 2.1."""

LEGACY: Final = {"OS-EXT-VIF-NET": "ExtendedVIFNet"}
"""What `/v2` has besides."""


class ExtensionNotFound(NotFound):
    """There is no such extension."""

    code, message = "extension_not_found", "Extension {alias} could not be found."


def _extension(alias: str, name: str) -> dict[str, Any]:
    return {
        "alias": alias, "name": name, "description": f"The part of the API that is called {name}.", "links": [],
        "namespace": "http://docs.openstack.org/compute/ext/fake_xml", "updated": "2014-12-03T00:00:00Z",
    }  # fmt: skip


_NAMES: Final = dict(entry.split("=") for entry in NAMES.split())


def _names(req: Request) -> dict[str, str]:
    return _NAMES | LEGACY if req.relaxed else _NAMES


def index(req: Request) -> dict[str, Any]:
    """All, by alias."""
    return {"extensions": [_extension(alias, name) for alias, name in sorted(_names(req).items())]}


def show(req: Request) -> dict[str, Any]:
    """One."""
    alias = req.path["id"]
    if alias not in _names(req):
        raise ExtensionNotFound(alias=alias)
    return {"extension": _extension(alias, _names(req)[alias])}


OPS: tuple[Op, ...] = (
    Op("GET", "/extensions", index, policy=_RULE, query=NO_QUERY),
    Op("GET", "/extensions/{id}", show, policy=_RULE, query=NO_QUERY, errors=(404,)),
)
