#!/bin/sh
# Install what the browser tests drive: Debian's Chromium and one font. Does nothing when both are there.
set -eu

missing=""
command -v chromium >/dev/null 2>&1 || command -v chromium-browser >/dev/null 2>&1 \
  || command -v google-chrome >/dev/null 2>&1 || missing="chromium"
[ -e /usr/share/fonts/truetype/dejavu/DejaVuSans.ttf ] || missing="$missing fonts-dejavu-core"

if [ -z "$missing" ]; then
  echo "browser tests: Chromium and its font are installed"
  exit 0
fi
if ! command -v apt-get >/dev/null 2>&1; then
  echo "browser tests: please install Chromium (wanted:$missing) with this system's package manager" >&2
  exit 1
fi

root=""
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null 2>&1 || {
    echo "browser tests: neither root nor sudo; as root run: apt-get install --no-install-recommends $missing" >&2
    exit 1
  }
  root="sudo"
fi

echo "browser tests: installing $missing"
export DEBIAN_FRONTEND=noninteractive
# shellcheck disable=SC2086  # one word per package, and $root may be empty
$root apt-get update -qq
# shellcheck disable=SC2086
$root apt-get install --yes -qq --no-install-recommends $missing
