#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the packages of a build, the .deb files twice, of which it requires the same bytes, and tries
# them: they and the archive are unpacked into empty folders, and what lies there must run the first
# example of README.md as the build does, in Python too, and have a manual page for each command. They
# are left in BUILD/packages.
#
#   tools/ci/packages.sh [BUILD]      BUILD defaults to build/release, with its programs built
#   tools/ci/packages.sh --in-root    installs what is there with apt in a bare Debian 12, which
#                                     mmdebstrap makes from the network; needs root
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

fail() {
  echo "packages.sh: $*" >&2
  exit 1
}

read -r -a example < <(sed -n 's|^\./run\.sh \(collective .*\)|\1|p' README.md)

if [[ ${1:-} == --in-root ]]; then
  packages=(build/release/packages/trainyard_*.deb)
  root=$scratch/root
  mmdebstrap --quiet --variant=minbase bookworm "$root"
  cp "${packages[@]}" "$root/tmp"
  started=$SECONDS
  chroot "$root" sh -c 'apt-get -q -y update && apt-get -q -y --no-install-recommends install \
    /tmp/trainyard_*.deb' >"$scratch/apt.log" 2>&1 || fail "$(tail -n 20 "$scratch/apt.log")"
  # The program finds its configs beside itself by /proc.
  unshare --mount sh -c 'root=$1 && shift && mount -t proc proc "$root/proc" &&
    chroot "$root" trainyard "$@"' sh "$root" "${example[@]}"
  echo "installed, and the first result printed, in $((SECONDS - started)) s" >&2
  exit 0
fi

build=${1:-build/release}
# What a package says of its age is that of the last commit, not of the day of its build.
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}

# make_packages FOLDER GENERATORS
make_packages() {
  cpack --config "$build/CPackConfig.cmake" -G "$2" -B "$1" >"$scratch/cpack.log" 2>&1 ||
    fail "$(tail -n 20 "$scratch/cpack.log")"
  rm -rf "$1/_CPack_Packages"
}

make_packages "$scratch/first" "DEB;TGZ"
make_packages "$scratch/second" DEB
for file in "$scratch"/second/*; do
  cmp "$file" "$scratch/first/${file##*/}" || fail "two runs of cpack made different bytes"
done
rm -rf "$build/packages"
cp -r "$scratch/first" "$build/packages"

# try_program PROGRAM MANUAL_PAGES
try_program() {
  (cd / && "$1" "${example[@]}") >"$scratch/found.txt" || fail "$1: the example failed"
  diff -u "$scratch/expected.txt" "$scratch/found.txt" || fail "$1: another result"
  local name
  for name in $("$1" --complete --man "" | cut -f 1); do
    [[ -s $2/trainyard-$name.1.gz ]] || fail "$2: no page of $name"
  done
  [[ -s $2/trainyard.1.gz ]] || fail "$2: no page of the program"
}

"$build/bin/trainyard" "${example[@]}" >"$scratch/expected.txt"
for package in "$build"/packages/*.deb; do
  dpkg-deb -x "$package" "$scratch/root"
done
try_program "$scratch/root/usr/bin/trainyard" "$scratch/root/usr/share/man/man1"
modules=$scratch/root/usr/lib/python3/dist-packages
if [[ -d $modules ]]; then
  (cd / && PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$modules python3 -c '
import sys, trainyard
print(trainyard.call(*sys.argv[1:]).text, end="")' "${example[@]}") \
    >"$scratch/found.txt" || fail "$modules: the example failed"
  diff -u "$scratch/expected.txt" "$scratch/found.txt" || fail "$modules: another result"
fi
# Wherever the archive lies.
mkdir "$scratch/a folder"
tar -xzf "$build"/packages/trainyard-*.tar.gz -C "$scratch/a folder" --strip-components=1
try_program "$scratch/a folder/bin/trainyard" "$scratch/a folder/share/man/man1"
(cd "$build/packages" && sha256sum -- *.deb *.tar.gz)
