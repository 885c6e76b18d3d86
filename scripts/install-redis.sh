#!/bin/sh
# Makes sure that redis-server is on PATH: the tests start servers of their own from it.
# Does nothing if it is there already; otherwise installs the distribution's package.
set -eu

if command -v redis-server >/dev/null 2>&1; then
	exit 0
fi

fail() {
	echo "install-redis: $1; put redis-server on PATH, then try again" >&2
	exit 1
}

command -v apt-get >/dev/null 2>&1 ||
	fail "redis-server is missing and there is no apt-get: install it with your package manager (brew install redis, dnf install redis, ...)"

if [ "$(id -u)" -eq 0 ]; then
	as_root=env
elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
	as_root="sudo -n env"
else
	fail "redis-server is missing and installing it needs root: run sudo apt-get install redis-server"
fi

# RUNLEVEL=1 keeps the package from starting a service where init scripts decide.
echo "install-redis: redis-server is missing, installing it with apt-get"
$as_root DEBIAN_FRONTEND=noninteractive apt-get update -q || fail "apt-get update failed"
$as_root DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 \
	apt-get install -q -y --no-install-recommends redis-server || fail "apt-get install redis-server failed"

command -v redis-server >/dev/null 2>&1 || fail "the package was installed but redis-server is not on PATH"
echo "install-redis: $(redis-server --version)"
