#!/usr/bin/env bash
# Installs the packages listed in a file if some are missing: as root, or through sudo when it asks
# for no password. Names those that stay missing, and ends with 3 if another try may get them, else
# with 0: on a system that is not Debian's they have other names, and a distribution may lack some.
set -eu
list=$1
mapfile -t wanted < <(grep -v -e '^#' -e '^$' "$list")
if ! command -v dpkg-query > /dev/null; then
  echo "Not a Debian system: install with your package manager, under its names: ${wanted[*]}" >&2
  exit 0
fi

find_missing() {
  missing=()
  local name state
  for name in "${wanted[@]}"; do
    state=$(dpkg-query -W -f='${db:Status-Status}' "$name" 2> /dev/null || true)
    [ "$state" = installed ] || missing+=("$name")
  done
}

find_missing
[ ${#missing[@]} -eq 0 ] && exit 0
if [ "$(id -u)" = 0 ]; then run=(); elif sudo -n true 2> /dev/null; then run=(sudo); else
  echo "Missing system packages. Run: sudo apt-get install ${missing[*]}" >&2
  exit 3
fi
export DEBIAN_FRONTEND=noninteractive
reached=0
"${run[@]}" apt-get update -qq || reached=3
for name in "${missing[@]}"; do
  # One by one: a distribution without one of them (Ubuntu's chromium is a snap) gets the others.
  "${run[@]}" apt-get install -y -qq --no-install-recommends "$name" > /dev/null || true
done
find_missing
[ ${#missing[@]} -eq 0 ] && exit 0
echo "Could not install: ${missing[*]}. What needs them will say so." >&2
exit $reached
