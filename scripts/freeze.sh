#!/bin/sh
# Prints a new constraints.txt: the newest versions that pyproject.toml allows, of all extras together.
set -eu

extras=dev,claude,a2a,notify,embed,otel,algorand,code-more
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

"${PYTHON:-python3}" -m venv "$folder"
"$folder/bin/python" -m pip install -qq --disable-pip-version-check -e ".[$extras]" editables hatchling
"$folder/bin/python" -m pip check >&2
echo "# Made by 'make constraints': the versions that every install of this checkout gets."
"$folder/bin/python" -m pip freeze --exclude-editable
