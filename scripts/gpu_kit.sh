#!/bin/bash
# A folder to carry to a machine with an NVIDIA GPU: the program, its worker without LLVM, the small libraries it needs, models,
# and what runs them. There: python3 FOLDER/run.py
#
#   scripts/gpu_kit.sh FOLDER MODEL.onnx...
set -euo pipefail
cd "$(dirname "$0")/.."
out=$1
shift
scripts/build.sh build/portable --buildtype=release --prefix=/usr/local -Dllvm=disabled -Dzip=disabled -Dtests=disabled >build/portable.log 2>&1 || {
    tail -20 build/portable.log >&2
    exit 1
}
mkdir -p "$out/lib" "$out/models"
cp build/portable/cli/hone build/portable/src/codegen/hone-worker "$out/"
cp build/portable/src/api/libhone.so.0 "$out/lib/"
# everything but the C library comes along
ldd build/portable/cli/hone | awk '$3 ~ /^\// && $1 !~ /^lib(c|m|dl|pthread|hone)\.so/ {print $3}' | while read -r lib; do
    cp -L "$lib" "$out/lib/"
done
strip "$out/hone" "$out/hone-worker" "$out"/lib/*
cp bench/gpu/*.py bench/contest.py "$out/"
[ $# -eq 0 ] || cp -L "$@" "$out/models/"
du -sh "$out"
