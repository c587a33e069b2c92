#!/usr/bin/env bash
# Installs what a make target needs beside the Rust toolchain, on Debian and its kin:
#   scripts/setup.sh demo|test|bench
# Asks nothing, changes nothing where nothing is missing, and may run any number of times.
set -euo pipefail

# libpcap captures on interfaces; cmake builds libyang, which uses libpcre2.
build=(cmake gcc libc6-dev libpcap-dev libpcre2-dev make pkg-config)
case "${1:-}" in
  demo) packages=("${build[@]}") ;;
  # g++ compiles libFuzzer for the fuzz harness. tshark and ipfixDump read what we read and write. ip
  # and unshare make network namespaces for live traffic. softflowd exports to our collector, and
  # openssl and python3 are the other side of TLS. redis-server holds the database of a switch.
  # yanglint judges rows of queue telemetry. libnetconf2, whose headers include those of libssh and
  # OpenSSL, and ncclient are clients of NETCONF. chromium shows the dashboard.
  test) packages=("${build[@]}" chromium curl g++ iproute2 libfixbuf-tools libnetconf2-dev libssh-dev
    libssl-dev libyang2-tools openssh-client openssl python3 python3-ncclient python3-pip python3-venv
    redis-server softflowd tshark util-linux zstd) ;;
  bench) packages=("${build[@]}" nfdump redis-server softflowd tshark util-linux) ;;
  *)
    echo "usage: scripts/setup.sh demo|test|bench" >&2
    exit 2
    ;;
esac

if ! command -v cargo >/dev/null; then
  echo "setup: cargo is not in PATH; install the stable Rust toolchain first (https://rustup.rs)" >&2
  exit 1
fi

if ! command -v dpkg-query >/dev/null; then
  echo "setup: not a Debian system; nothing is installed. The equivalents of these packages are" >&2
  echo "setup: needed: ${packages[*]}" >&2
  exit 0
fi

missing=()
for package in "${packages[@]}"; do
  state=$(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$state" = installed ] || missing+=("$package")
done
[ "${#missing[@]}" -gt 0 ] || exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "setup: neither root nor sudo; have these packages installed: ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi

echo "setup: installing ${missing[*]}" >&2
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
  apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2
