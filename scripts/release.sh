#!/bin/sh
# Builds what is released into DIR (dist/release unless given): archives of the weir command for each platform, each with its
# manual pages, completions, licence and README; checksums; and a bill of materials (CycloneDX). The same commit and version of Go
# give the same bytes: nothing in them tells of the machine or the time. Needs a clean checkout, as the version is that of Git.
set -eu
umask 022
case ${1:-} in
"") dir=dist/release ;;
/*) dir=$1 ;;
*) dir=$PWD/$1 ;;
esac
cd "$(dirname "$0")/.."
targets=${TARGETS:-"linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64"}
sbom=github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.9.0

if [ -n "$(git status --porcelain)" ]; then
	echo "release: there are changes that are not committed: commit or stash them, so that the version says what was built" >&2
	exit 1
fi
if [ $# -gt 0 ] && [ -d "$dir" ] && [ -n "$(ls -A "$dir")" ] && [ ! -f "$dir/SHA256SUMS" ]; then
	echo "release: $dir holds other things than a release: use a directory that is empty, or not there" >&2
	exit 1
fi
export CGO_ENABLED=0 GOFLAGS="-trimpath -buildvcs=true" TZ=UTC LC_ALL=C
when=$(git log -1 --format=%ct)
version=$(git describe --tags --always)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
rm -rf "$dir"
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)

echo "release: weir $version: completions and manual pages"
go build -ldflags "-s -w" -o "$work/weir" ./cmd/weir
mkdir -p "$work/share/completions"
"$work/weir" man "$work/share/man" >/dev/null
for shell in bash zsh fish powershell; do
	"$work/weir" completion $shell >"$work/share/completions/weir.$shell"
done
cp LICENSE README.md "$work/share/"

for target in $targets; do
	os=${target%/*} arch=${target#*/}
	name=weir_${version}_${os}_${arch}
	echo "release: $name"
	mkdir "$work/$name"
	cp -R "$work/share/." "$work/$name/"
	program=weir
	[ "$os" != windows ] || program=weir.exe
	GOOS=$os GOARCH=$arch go build -ldflags "-s -w" -o "$work/$name/$program" ./cmd/weir
	find "$work/$name" -exec touch -h -d "@$when" {} +
	tar -C "$work" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$when" --mode=u+rw,go+r-w -cf - "$name" | gzip -9n >"$dir/$name.tar.gz"
done

echo "release: bill of materials"
go run $sbom app -json -noserial -main cmd/weir -output "$dir/weir_${version}.cdx.json" . 2>"$work/sbom.log" || { cat "$work/sbom.log" >&2; exit 1; }
sed -i "s/\"timestamp\": \"[^\"]*\"/\"timestamp\": \"$(date -u -d "@$when" +%Y-%m-%dT%H:%M:%SZ)\"/" "$dir/weir_${version}.cdx.json"
(cd "$dir" && sha256sum -- * >SHA256SUMS)
echo "release: $dir holds $(find "$dir" -type f | wc -l) files"
