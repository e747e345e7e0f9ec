#!/bin/sh
# release.sh DIR makes a release in DIR, of the commit that is checked out: an archive a platform, Debian packages, the JavaScript client
# for npm, a bill of materials, the notes and the checksums of all. The version is the commit's tag (v1.2.3); from the environment:
# PLATFORMS, such as linux/amd64. It needs Go, git, GNU tar and, beyond Go modules, no network. The same commit gives the same files.
set -eu
out=$1
cd "$(dirname "$0")/../.."
tag=$(git describe --tags --exact-match --match 'v[0-9]*') || { echo "release: the commit has no tag such as v1.2.3" >&2; exit 1; }
[ -z "$(git status --porcelain)" ] || { echo "release: there are changes that are in no commit" >&2; exit 1; }
version=${tag#v}
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
mkdir -p "$out"
out=$(cd "$out" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# pack NAME DIR: an archive with nothing in it of who packed it and when.
pack() { tar -C "$work" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --mode=u+w,go-w,a+rX -cf - "$2" | gzip -9n >"$out/$1"; }

awk -v v="$version" '/^## /{on = ($2 == v)} on && !/^## /' CHANGELOG.md >"$out/NOTES.md"
[ -s "$out/NOTES.md" ] || { echo "release: CHANGELOG.md has no section \"## $version\"" >&2; exit 1; }

# build PLATFORM FILE
build() { GOOS=${1%/*} GOARCH=${1#*/} CGO_ENABLED=0 go build -trimpath -buildvcs=true -ldflags='-s -w' -o "$2" ./cmd/liveserver; }

here=$(go env GOHOSTOS)/$(go env GOHOSTARCH)
build "$here" "$work/here" # to read the others

for platform in ${PLATFORMS:-linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64}; do
  os=${platform%/*} arch=${platform#*/}
  name=liveroom-$version-$os-$arch exe=
  [ "$os" = windows ] && exe=.exe
  mkdir "$work/$name"
  if [ "$platform" = "$here" ]; then
    cp "$work/here" "$work/$name/liveserver$exe"
  else
    build "$platform" "$work/$name/liveserver$exe"
  fi
  "$work/here" version -sbom "$work/$name/liveserver$exe" >"$out/$name.cdx.json"
  cp -R LICENSE README.md README.zh-CN.md CHANGELOG.md docs deploy "$work/$name/"
  rm -rf "$work/$name/deploy/release" "$work/$name"/deploy/*.go
  find "$work/$name" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} + # nfpm keeps the times of files
  pack "$name.tar.gz" "$name"
  if [ "$os" = linux ]; then
    VERSION=$version ARCH=$arch ROOT=$work/$name CGO_ENABLED=0 GOFLAGS="${GOFLAGS:-} -trimpath" go tool -C deploy/release nfpm package -f nfpm.yaml -p deb -t "$out/"
  fi
done

mkdir "$work/package"
cp web/client/*.js LICENSE "$work/package/"
sed "s/\"0.0.0\"/\"$version\"/" deploy/release/package.json >"$work/package/package.json"
pack "liveroom-client-$version.tgz" package

cd "$out"
rm -f SHA256SUMS
sha256sum -- * >"$work/sums"
mv "$work/sums" SHA256SUMS
