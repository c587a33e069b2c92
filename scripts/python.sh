#!/usr/bin/env bash
# Prints the Python interpreter of an environment with the packages of tests/python/requirements.txt:
#   scripts/python.sh DIRECTORY
# Makes it where it is missing or older than the list. Several may ask at the same time.
set -euo pipefail
directory=${1:?usage: scripts/python.sh DIRECTORY}
requirements=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/tests/python/requirements.txt
mkdir -p "$directory"
exec 9>"$directory/lock"
flock 9
if ! cmp -s "$requirements" "$directory/installed"; then
  echo "python.sh: installing the packages of $requirements" >&2
  python3 -m venv --clear "$directory/venv" >&2
  "$directory/venv/bin/pip" install --quiet --disable-pip-version-check -r "$requirements" >&2
  cp "$requirements" "$directory/installed"
fi
echo "$directory/venv/bin/python"
