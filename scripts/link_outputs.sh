#!/bin/bash
# Give what a build made its short names: build/hone, build/libhone.so, build/libhone-rt.so, build/hone-worker.
#
#   scripts/link_outputs.sh BUILD_DIR
set -euo pipefail
cd "$(dirname "$0")/.."
for name in hone hone-worker libhone.so libhone.so.0 libhone-rt.so libhone-rt.so.0 libhone-image.so; do
    made=$(find "$1" -name "$name" ! -type d ! -path '*.p/*' | head -n 1)
    if [ -n "$made" ]; then
        ln -sfn "$(realpath --relative-to=build "$(dirname "$made")")/$name" "build/$name"
    else
        rm -f "build/$name"
    fi
done
