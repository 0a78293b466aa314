"""The Compute API's microversions, a line each, and the documents that announce them (errors.md 4, 7)."""

from __future__ import annotations

from typing import Any, Final

from kilonova.http.op import Answer, Op, Request
from kilonova.http.versions import Versions

LINES: Final[dict[str, str]] = {
    "2.1": "The Compute API with strict validation of requests.",
    "2.2": "Key pairs have a type; creating one answers 201, deleting one 204.",
    "2.3": "Servers show host name, kernel, ramdisk, launch index, reservation, root device and user data to admins.",
    "2.4": "Fixed IPs showed whether they are reserved (the API is gone).",
    "2.5": "Everybody may filter servers by ip6.",
    "2.6": "Remote consoles are a resource of the server; the console actions are gone.",
    "2.7": "Granting a project access to a public flavor is a conflict.",
    "2.8": "Remote consoles may be of protocol mks.",
    "2.9": "Servers show whether they are locked.",
    "2.10": "Administrators handle the key pairs of other users.",
    "2.11": "Services can be forced down.",
    "2.12": "Virtual interfaces showed their network (the API is gone).",
    "2.13": "Server groups show their project and user.",
    "2.14": "Evacuation finds out by itself whether storage is shared.",
    "2.15": "Server groups may have soft policies.",
    "2.16": "Servers show the status of their host.",
    "2.17": "A crash dump can be triggered.",
    "2.18": "The project in the URL is optional.",
    "2.19": "Servers have a description.",
    "2.20": "Volumes are attached to and detached from shelved servers.",
    "2.21": "Actions of deleted servers can be read.",
    "2.22": "A live migration can be forced to complete.",
    "2.23": "Live migrations under way are a resource of the server.",
    "2.24": "A live migration can be aborted.",
    "2.25": "Live migration chooses block migration by itself; disk over-commit is gone.",
    "2.26": "Servers have tags.",
    "2.27": "The header OpenStack-API-Version chooses the version.",
    "2.28": "A hypervisor's cpu_info is an object.",
    "2.29": "Evacuation asks the scheduler about the host, unless forced.",
    "2.30": "Live migration asks the scheduler about the host, unless forced.",
    "2.31": "Console tokens of every type can be looked up.",
    "2.32": "Networks and block devices of a new server may be tagged.",
    "2.33": "Hypervisors are listed in pages; block devices cannot be tagged any more.",
    "2.34": "Live migration checks the hosts after answering.",
    "2.35": "Key pairs are listed in pages.",
    "2.36": "Proxies to the image, network and volume services are gone.",
    "2.37": "A new server says which networks it wants, or auto, or none.",
    "2.38": "Listing servers of an unknown status is refused.",
    "2.39": "The proxy of image metadata is gone.",
    "2.40": "Tenant usage comes in pages.",
    "2.41": "Aggregates show their uuid.",
    "2.42": "Networks and block devices of a new server may be tagged again.",
    "2.43": "The hosts API is gone.",
    "2.44": "Actions on fixed and floating IPs are gone.",
    "2.45": "Creating an image or a backup answers the image's id.",
    "2.46": "The request id is also in x-openstack-request-id.",
    "2.47": "Servers show what their flavor was, not a link to it.",
    "2.48": "Diagnostics have one form for all drivers.",
    "2.49": "Interfaces and volumes may be tagged when attached.",
    "2.50": "Quota classes know server groups and forget the network's resources.",
    "2.51": "volume-extended is an external event; everybody sees an action's events.",
    "2.52": "A new server may have tags.",
    "2.53": "Services and hypervisors go by uuid.",
    "2.54": "Rebuilding may change the key pair.",
    "2.55": "Flavors have a description.",
    "2.56": "Cold migration may name a host.",
    "2.57": "Files are not injected any more; rebuilding may change the user data.",
    "2.58": "Actions come in pages and show when they changed.",
    "2.59": "Migrations come in pages and show their uuid.",
    "2.60": "Volumes may be attached to several servers.",
    "2.61": "Flavors show their extra specs.",
    "2.62": "An action's events show the host.",
    "2.63": "Servers may trust image certificates.",
    "2.64": "A server group has one policy, with rules.",
    "2.65": "A live migration can be aborted before it runs.",
    "2.66": "Lists filter by what changed before a time.",
    "2.67": "A block device may name the type of its volume.",
    "2.68": "Evacuation and live migration cannot be forced any more.",
    "2.69": "Servers in cells that do not answer are shown in part.",
    "2.70": "Attached interfaces and volumes show their tag.",
    "2.71": "Servers show their group.",
    "2.72": "New servers may use ports that ask for bandwidth.",
    "2.73": "Locking may give a reason, and servers are filtered by it.",
    "2.74": "A new server may name a host to be checked by the scheduler.",
    "2.75": "Unknown query parameters are refused; updated and rebuilt servers are shown in full.",
    "2.76": "power-update is an external event.",
    "2.77": "Unshelving may name a zone.",
    "2.78": "A server's NUMA topology can be read.",
    "2.79": "Attaching a volume may ask for its deletion with the server.",
    "2.80": "Migrations show and filter by user and project.",
    "2.81": "Images can be cached on the hosts of an aggregate.",
    "2.82": "accelerator-request-bound is an external event.",
    "2.83": "Everybody may use more filters on servers.",
    "2.84": "An action's events show details.",
    "2.85": "A volume attachment's delete_on_termination can be changed.",
    "2.86": "Extra specs of flavors are validated.",
    "2.87": "Servers that boot from a volume can be rescued.",
    "2.88": "Hypervisors show their uptime and leave usage to placement.",
    "2.89": "Volume attachments show their own ids.",
    "2.90": "A server's host name can be chosen.",
    "2.91": "Unshelving may name a host or unpin the zone.",
    "2.92": "Key pairs are imported only, and their names may hold @ and dots.",
    "2.93": "Servers that boot from a volume can be rebuilt with another image.",
    "2.94": "A server's host name may be a full domain name.",
    "2.95": "An evacuated server ends stopped.",
    "2.96": "Servers show the zone they are pinned to.",
    "2.97": "Shares can be attached to servers.",
    "2.98": "Servers show the properties of their image.",
    "2.99": "Remote consoles may be direct SPICE connections.",
    "2.100": "Servers show their scheduler hints.",
    "2.101": "Attaching a volume answers 202 at once.",
    "2.102": "Flavors are filtered by name and lose rxtx_factor and disabled; more queries are strict.",
    "2.103": "os-volumes_boot is gone.",
    "2.104": "A server's zone can be pinned and unpinned.",
}

VERSIONS: Final = Versions("compute", LINES, legacy_header="X-OpenStack-Nova-API-Version")

_MEDIA = "application/vnd.openstack.compute+json;version="
_DOCUMENTS: Final = {
    "v2.0": ("DEPRECATED", "", "", "2025-07-04T12:00:00Z", "v2", "2"),
    "v2.1": ("CURRENT", "2.104", "2.1", "2013-07-23T11:33:21Z", "v2.1", "2.1"),
}


def brief(identifier: str, base: str) -> dict[str, Any]:
    """A version as the list at `/` has it. base: scheme, host and prefix of the service."""
    status, version, minimum, updated, path, _ = _DOCUMENTS[identifier]
    return {
        "id": identifier, "status": status, "version": version, "min_version": minimum, "updated": updated,
        "links": [{"rel": "self", "href": f"{base}/{path}/"}],
    }  # fmt: skip


def full(identifier: str, base: str) -> dict[str, Any]:
    """A version as its own document has it."""
    document = brief(identifier, base)
    document["links"].append({"rel": "describedby", "type": "text/html", "href": "http://docs.openstack.org/"})
    document["media-types"] = [{"base": "application/json", "type": _MEDIA + _DOCUMENTS[identifier][5]}]
    return {"version": document}


def choices(path: str, base: str) -> dict[str, Any]:
    """The 300 for a path under no version."""
    return {"choices": [
        {
            "id": identifier, "status": row[0],
            "links": [{"rel": "self", "href": f"{base}/{row[4]}{path}"}],
            "media-types": [{"base": "application/json", "type": _MEDIA + row[5]}],
        }
        for identifier, row in _DOCUMENTS.items()
    ]}  # fmt: skip


def _service_base(req: Request) -> str:
    return req.base_url.rpartition("/")[0]


def show_root(req: Request) -> dict[str, Any]:
    """The document of the version that the request goes to."""
    return full("v2.0" if req.relaxed else "v2.1", _service_base(req))


def show(req: Request) -> Any:
    """One of the documents by its id; another id is not found."""
    from kilonova.core.errors import NotFound

    identifier = req.path["id"]
    if identifier not in _DOCUMENTS:
        raise NotFound(f"Version {identifier} could not be found.")
    return Answer(full(identifier, _service_base(req)))


OPS: tuple[Op, ...] = (
    Op("GET", "/", show_root, auth=False, errors=(404,)),
    Op("GET", "/versions/{id}", show, errors=(404,)),
)
