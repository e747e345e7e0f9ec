#!/bin/sh
# rootfs.sh DIR makes the image's file system in DIR. From the environment: TAGS (nonats: without the NATS server inside), GOOS, GOARCH.
set -eu
root=$1
cd "$(dirname "$0")/../.."
mkdir -p "$root/data" "$root/etc/ssl/certs"
CGO_ENABLED=0 go build -trimpath -buildvcs=auto -ldflags='-s -w' -tags "${TAGS:-}" -o "$root/liveserver" ./cmd/liveserver
"$root/liveserver" version -sbom >"$root/sbom.cdx.json" 2>/dev/null || # or by one that runs here
  GOOS='' GOARCH='' CGO_ENABLED=0 go run -trimpath ./cmd/liveserver version -sbom "$root/liveserver" >"$root/sbom.cdx.json"
cp LICENSE "$root/LICENSE"
cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
echo 'liveroom:x:65532:65532::/data:/' >"$root/etc/passwd"
echo 'liveroom:x:65532:' >"$root/etc/group"
chmod 0750 "$root/data"
