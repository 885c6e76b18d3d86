#!/bin/sh
# Makes sure that redis-server, curl, nc, promtool, python3, node, npm and chromium are on PATH: the tests start servers of their own
# from the first, ask the HTTP API with the second and the Bedrock surface with the third, check metrics and alerts with the fourth, run
# workers in other languages with the next two, and look at the page with the last three. Does nothing if they are there; otherwise installs the distribution's packages.
set -eu

# package_of PROGRAM prints the name of its package.
package_of() {
	case $1 in
	promtool) echo prometheus ;;
	node) echo nodejs ;;
	nc) echo netcat-openbsd ;;
	*) echo "$1" ;;
	esac
}

missing= packages=
for program in redis-server curl nc promtool python3 node npm chromium; do
	command -v $program >/dev/null 2>&1 && continue
	missing="$missing $program" packages="$packages $(package_of $program)"
done
[ -n "$missing" ] || exit 0

fail() {
	echo "install-tools: $1; put$missing on PATH, then try again" >&2
	exit 1
}

command -v apt-get >/dev/null 2>&1 ||
	fail "there is no apt-get to install$missing with: use your package manager (brew install redis, dnf install redis, ...)"

if [ "$(id -u)" -eq 0 ]; then
	as_root=env
elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
	as_root="sudo -n env"
else
	fail "installing it needs root: run sudo apt-get install$packages"
fi

# RUNLEVEL=1 keeps the package from starting a service where init scripts decide.
echo "install-tools: installing with apt-get:$packages"
$as_root DEBIAN_FRONTEND=noninteractive apt-get update -q || fail "apt-get update failed"
$as_root DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 \
	apt-get install -q -y --no-install-recommends$packages || fail "apt-get install$packages failed"

for program in $missing; do
	command -v $program >/dev/null 2>&1 || fail "the package was installed but $program is not on PATH"
done
