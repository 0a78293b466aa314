#!/bin/sh
# Makes or renews a virtual environment from a lock file, with any Python 3.11 or newer that is in PATH.
#
#   tools/venv.sh DIRECTORY LOCKFILE [editable]
#
# "editable" also installs this checkout into it, so that DIRECTORY/bin/kilonova runs the files you edit.
# What can go wrong on a fresh machine is said in one sentence on standard error, with a non-zero exit.
set -u
newline='
'
dir=$1 lock=$2 editable=${3:-}
root=$(cd "$(dirname "$0")/.." && pwd)

fail() {
    printf '%s\n' "$*" >&2
    exit 1
}

works() { # does "$1" run, and is it new enough? (a version manager's shim may exist without a Python behind it)
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

find_python() {
    newest_without_venv=
    for name in ${PYTHON:-} python3 python3.11 python3.12 python3.13 python3.14 python; do
        # every one of that name in PATH, not only the first: an old one may stand before it
        old_ifs=$IFS
        IFS=$newline
        set -- $(candidates "$name")
        IFS=$old_ifs
        for candidate in "$@"; do
            works "$candidate" || continue
            if "$candidate" -c 'import venv, ensurepip' >/dev/null 2>&1; then
                python=$candidate
                return
            fi
            newest_without_venv=$candidate
        done
    done
    if [ -n "$newest_without_venv" ]; then
        fail "$newest_without_venv has no venv module: install it (on Debian or Ubuntu: apt-get install python3-venv) and run make again."
    fi
    fail "Python 3.11 or newer is needed and none was found in PATH: install one, or name it with make PYTHON=/path/to/python3.x."
}

candidates() {
    case $1 in */*) printf '%s\n' "$1"; return ;; esac
    IFS=:
    for folder in $PATH; do
        [ -x "${folder:-.}/$1" ] && printf '%s\n' "${folder:-.}/$1"
    done
}

install() {
    "$dir/bin/python" -m pip install -q --disable-pip-version-check "$@"
}

[ -f "$root/$lock" ] || fail "$lock is missing from $root: the checkout is not complete."
[ -w "$root" ] || fail "$root cannot be written to, so no virtual environment can be made in it: use a copy of the checkout that is yours."

cd "$root" || exit 1
if ! works "$dir/bin/python"; then # none yet, half-made, or its Python is gone
    find_python
    rm -rf "$dir"
    "$python" -m venv "$dir" || fail "$python could not make a virtual environment in $root/$dir: its message is above."
fi
install -r "$lock" || fail "The packages of $lock could not be installed: pip's message is above (behind a proxy, set HTTPS_PROXY)."
if [ -n "$editable" ]; then
    install --no-deps --no-build-isolation -e . || fail "This checkout could not be installed into $dir: pip's message is above."
fi
