"""What the network service refuses, named as Neutron names it: the class name is the error's type on the wire."""

from __future__ import annotations

from kilonova.core.errors import Conflict, Forbidden, Invalid, NotFound


class HTTPBadRequest(Invalid):
    code = "bad_request"


class InvalidInput(Invalid):
    code, message = "invalid_input", "Invalid input for operation: {reason}."


class PolicyNotAuthorized(Forbidden):
    code, message = "policy_not_authorized", "{action} is not allowed for this account."


class NetworkNotFound(NotFound):
    code, message = "network_not_found", "Network {id} could not be found."


class SubnetNotFound(NotFound):
    code, message = "subnet_not_found", "Subnet {id} could not be found."


class PortNotFound(NotFound):
    code, message = "port_not_found", "Port {id} could not be found."


class RouterNotFound(NotFound):
    code, message = "router_not_found", "Router {id} could not be found."


class FloatingIPNotFound(NotFound):
    code, message = "floating_ip_not_found", "Floating IP {id} could not be found."


class SecurityGroupNotFound(NotFound):
    code, message = "security_group_not_found", "Security group {id} does not exist."


class SecurityGroupRuleNotFound(NotFound):
    code, message = "security_group_rule_not_found", "Security group rule {id} does not exist."


class ExtensionNotFound(NotFound):
    code, message = "extension_not_found", "Extension with alias {id} does not exist."


class NetworkInUse(Conflict):
    code, message = "network_in_use", "Network {id} is still in use: {count} port(s) are on it."


class SubnetInUse(Conflict):
    code, message = "subnet_in_use", "Subnet {id} is still in use: one or more ports have an address from it."


class ServicePortInUse(Conflict):
    code, message = "port_in_use", "Port {id} belongs to {owner} and cannot be deleted directly."


class MacAddressInUse(Conflict):
    code, message = "mac_address_in_use", "MAC address {mac} is already in use on network {network}."


class IpAddressInUse(Conflict):
    code, message = "ip_address_in_use", "IP address {ip} is already in use on network {network}."


class IpAddressGenerationFailure(Conflict):
    code, message = "no_more_addresses", "No more IP addresses available on network {network}."


class InvalidIpForNetwork(Invalid):
    code, message = "invalid_ip_for_network", "IP address {ip} is not in any subnet of network {network}."


class InvalidIpForSubnet(Invalid):
    code, message = "invalid_ip_for_subnet", "IP address {ip} is not usable in subnet {subnet}."


class InvalidAllocationPool(Invalid):
    code, message = "invalid_allocation_pool", "The allocation pool {start}-{end} is not usable: {reason}."


class GatewayConflictWithAllocationPools(Conflict):
    code, message = "gateway_in_pool", "The gateway {ip} lies inside an allocation pool of the subnet."


class PortSecurityPortHasSecurityGroup(Conflict):
    code, message = "port_has_groups", "A port without port security cannot have security groups."


class AddressPairAndPortSecurityRequired(Conflict):
    code, message = "pairs_need_security", "Allowed address pairs need port security."


class SecurityGroupInUse(Conflict):
    code, message = "security_group_in_use", "Security group {id} is still in use by ports."


class SecurityGroupCannotRemoveDefault(Conflict):
    code, message = "default_group_stays", "The default security group cannot be removed."


class SecurityGroupDefaultAlreadyExists(Conflict):
    code, message = "default_group_exists", "The project has its default security group already."


class SecurityGroupRuleExists(Conflict):
    code, message = "rule_exists", "The security group has this rule already: {id}."


class RouterInUse(Conflict):
    code, message = "router_in_use", "Router {id} still has interfaces."


class RouterInterfaceNotFound(NotFound):
    code, message = "interface_not_found", "Router {id} has no interface {what}."


class RouterInterfaceInUseByFloatingIP(Conflict):
    code, message = "interface_in_use", "A floating IP needs the interface of router {id} on subnet {subnet}."


class RouterExternalGatewayInUseByFloatingIp(Conflict):
    code, message = "gateway_in_use", "A floating IP needs the gateway of router {id}."


class PortInUse(Conflict):
    code, message = "port_has_device", "Port {id} is used by {device} already."


class ExternalGatewayForFloatingIPNotFound(NotFound):
    code, message = "no_gateway", "Subnet {subnet} has no router to external network {network}, so port {port} cannot get a floating IP."  # fmt: skip  # noqa: E501


class FloatingIPPortAlreadyAssociated(Conflict):
    code, message = "already_associated", "Fixed IP {ip} of port {port} has a floating IP already."


class OverQuota(Conflict):
    code, message = "over_quota", "Quota exceeded for {resource}: the limit of {limit} is reached (PUT /v2.0/quotas/<project> raises it)."  # fmt: skip  # noqa: E501


class AutoAllocationFailure(Conflict):
    code, message = "auto_allocation_failure", "No topology can be made: {reason}."
