#!/bin/sh
# Builds the page of package web into web/dist, or with an argument into that folder. Needs node 20 and npm.
set -eu
cd "$(dirname "$0")/../web/ui"
[ -d node_modules ] && [ node_modules/.package-lock.json -nt package-lock.json ] || npm ci --ignore-scripts --no-audit --no-fund --silent
npx --no-install tsc --noEmit
npx --no-install vite build --logLevel warn --emptyOutDir --outDir "${1:-../dist}"
