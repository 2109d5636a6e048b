#!/bin/sh
# usage: install.sh VENV [EXTRAS]
# Puts the checkout, editable, into the virtual environment VENV at exactly the versions of constraints.txt.
set -eu

venv=$1
extras=${2:-}
python=${PYTHON:-python3}

fail() {
    printf '%s\n' "$@" >&2
    exit 1
}

command -v "$python" >/dev/null 2>&1 ||
    fail "There is no '$python' here." "Install Python 3.11 or newer, or name one: make up PYTHON=python3.12"
version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    fail "'$python' is Python $version; Rookery needs 3.11 or newer." "Name another: make up PYTHON=python3.12"

# An environment whose interpreter is gone is made anew.
if ! "$venv/bin/python" -c '' 2>/dev/null; then
    "$python" -c 'import ensurepip, venv' 2>/dev/null ||
        fail "'$python' cannot make virtual environments: its venv module is missing." \
             "On Debian and Ubuntu: apt-get install python$version-venv"
    printf 'Making %s with Python %s ...\n' "$venv" "$version"
    "$python" -m venv --clear "$venv"
fi

# The two variables hold for the packages that build ours as well, in older and in newer pip.
install() {
    printf 'Installing rookery%s and what it needs ...\n' "${1:+[$1]}"
    PIP_CONSTRAINT=constraints.txt PIP_BUILD_CONSTRAINT=constraints.txt \
        "$venv/bin/python" -m pip install -qq --disable-pip-version-check -e ".${1:+[$1]}"
}

# Not every platform has the packages of the extra 'embed', and everything works without them.
if ! install "$extras"; then
    case ",$extras," in
        *,embed,*) rest=$(printf '%s' "$extras" | tr ',' '\n' | grep -vx embed | paste -sd, -) ;;
        *) exit 1 ;;
    esac
    printf '%s\n' "The extra 'embed' cannot be installed here: going on without it." >&2
    install "$rest"
    printf '%s\n' "Installed without the extra 'embed': knowledge is searched by keyword, not by meaning." >&2
fi

# pip compiles what it copies, and an editable install copies nothing. A file that does not compile is no
# reason to install again: whoever imports it sees the error.
"$venv/bin/python" -m compileall -q src || :
