#!/bin/sh
# Why is this server where it is, or nowhere? The checks of a scheduling decision, from the request to the claim, each
# with what it looks at.
#
#     scheduler-checks.sh SERVER            OS_CLOUD (or OS_* variables) of an administrator, for the openstack command
#     STATE_DIR=…                           the cloud of `kilonova up`: its log, its clouds.yaml and its API database
#     LOG=… API_DATABASE=… CONFIG=…         elsewhere: files with the log of schedulers and conductors; the address of
#                                           the API database (a SQLite file, postgresql://… or mysql://…); kilonova.conf
#
# It needs the openstack command with osc-placement (`make client`), and psql, mysql or sqlite3 for the database. Lines
# of level DEBUG are there with `debug = True` in kilonova.conf. Nothing is changed. Exit code 0 when every check could
# be made, 1 when one could not, 2 for bad usage.
set -u

[ $# -eq 1 ] || { echo "usage: scheduler-checks.sh SERVER" >&2; exit 2; }
if [ -n "${STATE_DIR:-}" ]; then
    LOG=${LOG:-$STATE_DIR/kilonova.log}
    API_DATABASE=${API_DATABASE:-$STATE_DIR/databases/api.db}
    if [ -z "${OS_CLOUD:-}${OS_AUTH_URL:-}" ]; then
        export OS_CLIENT_CONFIG_FILE="$STATE_DIR/clouds.yaml" OS_CLOUD=kilonova-admin
    fi
fi
LOG=${LOG:-/var/log/kilonova/*.log}
failed=0

title() { printf '\n== %s\n' "$*"; }
note() { printf '   -- %s\n' "$*"; }

# Several commands of the openstack client by one process: it takes a second to start.
ask() {
    for line in "$@"; do echo "$line"; done | openstack 2>&1 | sed 's/^(openstack) //g; /^$/d'
}

rows() { # one statement on the API database
    case ${API_DATABASE:-} in
    postgresql*) psql -At -F ' | ' "$(echo "$API_DATABASE" | sed 's/^postgresql+[a-z]*:/postgresql:/')" -c "$1" ;;
    mysql*)
        address=$(echo "$API_DATABASE" | sed 's/^[a-z+]*:\/\///; s/?.*//')
        who=${address%@*} place=${address##*@}
        host=${place%%/*}
        port=3306 secret=
        case $host in *:*) port=${host#*:} ;; esac
        case $who in *:*) secret=${who#*:} ;; esac
        MYSQL_PWD=$secret mysql -N -h "${host%%:*}" -P "$port" -u "${who%%:*}" "${place#*/}" -e "$1"
        ;;
    "") return 1 ;;
    *) sqlite3 -readonly "$API_DATABASE" "$1" ;;
    esac
}

lines() { # the lines of the log that have all these words, at most 20
    # shellcheck disable=SC2086
    found=$(cat $LOG 2>/dev/null | grep -F -- "$1")
    shift
    for word in "$@"; do found=$(echo "$found" | grep -F -- "$word"); done
    [ -n "$found" ] || return 1
    echo "$found" | tail -n 20 | cut -c 1-600 | sed 's/^/   /'
}

check() { # check WHAT COMMAND…: a check that cannot be made is said, and the others go on
    what=$1
    shift
    "$@" || { note "could not be looked at: $what"; failed=1; }
}

server=$(openstack server show "$1" -f value -c id 2>/dev/null) || {
    echo "There is no server $1, or this cloud does not let us see it." >&2
    exit 2
}
value() { echo "$facts" | sed -n "s/^$1=\"\{0,1\}\([^\"]*\)\"\{0,1\}$/\1/p"; }
facts=$(ask "server show $server -f shell" | sed 's/-/_/g; s/:/_/g' | tr -d '\r')
node=$(openstack server show "$server" -f value -c OS-EXT-SRV-ATTR:hypervisor_hostname)
events=$(openstack server event list "$server" -f value -c "Request ID" -c Action)
request=$(echo "$events" | awk '$2 == "create" {print $1}' | tail -n 1)
flavor=$(openstack server show "$server" -f json -c flavor | tr -d ' \n')
amount() { echo "$flavor" | sed -n "s/.*\"$1\":\([0-9]*\).*/\1/p"; }
provider=
case $node in "" | None) ;; *) provider=$(openstack resource provider list --name "$node" -f value -c uuid) ;; esac
echo "server $server, state $(value status), request ${request:-unknown}, on ${node:-no host}"

title "1 Did the request reach a scheduler?"
note "the request spec, one row a server (nova_api.request_specs)"
check request_specs rows "SELECT created_at, spec FROM request_specs WHERE instance_uuid = '$server'"
note "is a scheduler up?"
ask "compute service list --service nova-scheduler -f value -c Binary -c Host -c State"
note "what conductor and scheduler say of the server"
lines "$server" schedul || note "nothing: it was asked elsewhere, or the log is too old"

title "2 What did the request filters do?"
{ [ -n "$request" ] && lines "$request" "request filter"; } || note "no lines: set debug = True, and ask again"
note "what they rely on: aggregates here, and their mirror in Placement"
ask "aggregate list --long -f value -c Name -c Properties"
[ -z "$provider" ] || ask "resource provider aggregate list $provider" "resource provider trait list $provider -f value"

title "3 Does Placement have candidates?"
size="--resource VCPU=$(amount vcpus) --resource MEMORY_MB=$(amount ram) --resource DISK_GB=$(amount disk)"
# shellcheck disable=SC2086
openstack allocation candidate list $size --limit 5 -c "resource provider" -c allocation -c "inventory used/capacity"
if [ -n "$request" ] && lines "$request" "Got no allocation candidates"; then
    note "capacity, traits or aggregates, not filters"
else
    note "it never said: Got no allocation candidates"
fi
[ -z "$provider" ] || ask "resource provider usage show $provider" "resource provider inventory list $provider"

title "4 Which filter zeroed the list?"
lines "$server" "Filter " || note "no filter ran: go one step back"
{ [ -n "$request" ] && lines "$request" "Weighed ["; } || note "nothing was weighed, or debug = True is not set"
check explain kilonova explain "$server" ${STATE_DIR:+--state-dir "$STATE_DIR"}

title "5 Is it claimed?"
ask "resource provider allocation show $server"
{ [ -n "$request" ] && lines "$request" "placement.concurrent_update"; } || note "no provider changed under the claim"
{ [ -n "$request" ] && lines "$request" "AllocationUpdateFailed"; } || note "nobody else wrote the server's allocations"
note "claims that nobody holds any more, and servers without their claims"
nova-manage ${CONFIG:+--config-file "$CONFIG"} placement audit --verbose ${STATE_DIR:+--state-dir "$STATE_DIR"}
case $? in 0 | 3) ;; *) note "could not be looked at: placement audit"; failed=1 ;; esac

title "6 Who is confined to whom?"
kilonova aggregates ${CONFIG:+--config-file "$CONFIG"} audit ${STATE_DIR:+--state-dir "$STATE_DIR"}
case $? in 0 | 1) ;; *) note "could not be looked at: aggregates"; failed=1 ;; esac
exit $failed
