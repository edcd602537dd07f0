#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs the Debian packages that Trainyard is built with. Does nothing, and needs no network,
# when all are there. Elsewhere than on Debian and its relatives it only says what is needed.
#
#   tools/setup/packages.sh [--with-clang] [--with-site] [--with-notebooks]
#   tools/setup/packages.sh --list [...]     prints the names and installs nothing
#
# --with-clang adds what only .ci/run needs, --with-site what makes the site of docs/ (44 MiB),
# --with-notebooks what runs docs/notebooks and has frames and figures of Python (62 MiB
# beside Matplotlib).
set -euo pipefail

# libboost-program-options-dev brings the headers of all of Boost, Boost.Graph among them.
packages=(
  g++ cmake ninja-build ccache git
  libboost-program-options-dev libboost-mpi-dev libyaml-cpp-dev libspdlog-dev libfmt-dev
  nlohmann-json3-dev libpugixml-dev libceres-dev libprotobuf-dev zlib1g-dev libzstd-dev
  libsqlite3-dev libcpp-httplib-dev pkg-config catch2 libbenchmark-dev
  libjs-d3 python3-yaml python3-jsonschema
  dpkg-dev file mandoc
  pybind11-dev python3-dev python3-venv
  iproute2 iperf3 procps
)
clang_packages=(clang-14 clang-format-14 clang-tidy-14 libclang-rt-14-dev lld-14 python3)
site_packages=(python3-sphinx python3-myst-parser furo)
notebook_packages=(python3-nbconvert python3-ipykernel python3-pandas python3-matplotlib)

list_only=no
for argument in "$@"; do
  case "$argument" in
    --with-clang) packages+=("${clang_packages[@]}") ;;
    --with-site) packages+=("${site_packages[@]}") ;;
    --with-notebooks) packages+=("${notebook_packages[@]}") ;;
    --list) list_only=yes ;;
    *)
      echo "packages.sh: expected --with-clang, --with-site, --with-notebooks or --list, found" \
        "\"$argument\"" >&2
      exit 2
      ;;
  esac
done

if [[ $list_only == yes ]]; then
  printf '%s\n' "${packages[@]}"
  exit 0
fi

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  echo "packages.sh: not a Debian system, nothing installed; needed are: ${packages[*]}" >&2
  exit 0
fi

# The status is three letters: wanted, state, error; an installed package has "i" as its state.
installed=$(dpkg-query --show --showformat='${binary:Package} ${db:Status-Abbrev}\n' \
  "${packages[@]}" 2>/dev/null | sed -n -E 's/^([^ :]+)(:[^ ]+)? .i.*/\1/p' || true)
missing=()
for package in "${packages[@]}"; do
  grep -q -x -F -e "$package" <<<"$installed" || missing+=("$package")
done
if [[ ${#missing[@]} -eq 0 ]]; then
  exit 0
fi

as_root=()
if [[ $(id -u) -ne 0 ]]; then
  if ! command -v sudo >/dev/null || ! sudo -n true 2>/dev/null; then
    echo "packages.sh: packages are missing, and installing them needs root (or sudo without a" \
      "password). Run as root: apt-get install ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo -n)
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT

apt_get() {
  ${as_root[@]+"${as_root[@]}"} env DEBIAN_FRONTEND=noninteractive \
    apt-get -q -y -o DPkg::Lock::Timeout=300 "$@" </dev/null >>"$log" 2>&1
}

echo "installing ${missing[*]}" >&2
# A list that cannot be fetched need not matter, so that only the installation decides.
apt_get update || true
if ! apt_get install --no-install-recommends "${missing[@]}"; then
  tail -n 30 "$log" >&2
  echo "packages.sh: apt-get could not install: ${missing[*]}" >&2
  exit 1
fi
