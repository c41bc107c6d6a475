#!/usr/bin/env bash
# Installs the packages listed in a file if some are missing: as root, or through sudo when it asks
# for no password. Otherwise it names the missing ones and goes on, because a system that is not
# Debian's has them under other names.
set -eu
list=$1
if ! command -v dpkg-query > /dev/null; then
  echo "Not a Debian system: install what $list names with your package manager." >&2
  exit 0
fi
missing=()
while read -r name; do
  case $name in ''|'#'*) continue ;; esac
  state=$(dpkg-query -W -f='${db:Status-Status}' "$name" 2> /dev/null || true)
  [ "$state" = installed ] || missing+=("$name")
done < "$list"
[ ${#missing[@]} -eq 0 ] && exit 0
if [ "$(id -u)" = 0 ]; then run=(); elif sudo -n true 2> /dev/null; then run=(sudo); else
  echo "Missing system packages. Run: sudo apt-get install ${missing[*]}" >&2
  exit 0
fi
export DEBIAN_FRONTEND=noninteractive
"${run[@]}" apt-get update -qq
for name in "${missing[@]}"; do
  # One by one: a distribution without one of them (Ubuntu's chromium is a snap) gets the others.
  "${run[@]}" apt-get install -y -qq --no-install-recommends "$name" > /dev/null \
    || echo "Could not install $name; what needs it will say so." >&2
done
