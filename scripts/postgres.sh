#!/bin/sh
# Sees to it that initdb is there for the tests, which start a PostgreSQL of their own.
# Installs it where that takes no question (root, apt-get); elsewhere it says what to install and fails.
set -eu

found() {
    command -v initdb >/dev/null 2>&1 && return
    for program in /usr/lib/postgresql/*/bin/initdb; do
        [ -x "$program" ] && return
    done
    return 1
}

found && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "Installing PostgreSQL for the tests ..."
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    apt-get install -y -qq --no-install-recommends postgresql >/dev/null
    found && exit 0
fi
echo "The tests run on SQLite and on PostgreSQL, and there is no initdb here." >&2
echo "Install PostgreSQL 13 or newer (Debian: apt-get install postgresql) and put its programs on the PATH." >&2
exit 1
