#!/bin/bash
# A folder to carry to a machine with an NVIDIA GPU: the program, its worker without LLVM, the small libraries it needs, models,
# and what runs them. There: python3 FOLDER/run.py
#
#   scripts/gpu_kit.sh [--tests] FOLDER MODEL.onnx...
#
# --tests adds the test programs and ONNX's node cases ($HONE_CONFORMANCE_DIR: a newer set besides). There:
# python3 FOLDER/tests/gpu/run.py
set -euo pipefail
cd "$(dirname "$0")/.."
tests=
[ "${1:-}" != --tests ] || {
    tests="build tactic_every public_bugs gpu_tactics tactic_fast"
    shift
}
out=$1
shift
scripts/build.sh build/portable --buildtype=release --prefix=/usr/local -Dllvm=disabled -Dzip=disabled \
    "-Dtests=$([ -n "$tests" ] && echo enabled || echo disabled)" >build/portable.log 2>&1 || {
    tail -20 build/portable.log >&2
    exit 1
}
mkdir -p "$out/lib" "$out/models"
cp build/portable/cli/hone build/portable/src/codegen/hone-worker "$out/"
cp build/portable/src/api/libhone.so.0 "$out/lib/"
# everything but the C library comes along
libraries() {
    ldd "$1" | awk '$3 ~ /^\// && $1 !~ /^lib(c|m|dl|pthread|hone)\.so/ {print $3}' | while read -r lib; do
        cp -L "$lib" "$out/lib/"
    done
}
libraries build/portable/cli/hone
if [ -n "$tests" ]; then
    mkdir -p "$out/bin" "$out/cases" "$out/tests"
    for t in $tests; do
        cp "build/portable/tests/test_$t" "$out/bin/"
    done
    cp build/portable/tests/conformance/conformance_cases "$out/bin/"
    image=build/portable/src/image/module/libhone-image.so # looked for beside the program
    [ ! -f $image ] || cp $image "$out/bin/"
    for p in "$out"/bin/*; do
        libraries "$p"
    done
    cp -r --parents tests/gpu/*.py tests/conformance/run.py tests/conformance/expected*.txt "$out/"
    stage=$(mktemp -d)
    trap 'rm -rf "$stage"' EXIT
    cp -r /usr/share/libonnx-testdata/data "$stage/debian"
    [ -z "${HONE_CONFORMANCE_DIR:-}" ] || cp -r "$HONE_CONFORMANCE_DIR" "$stage/newest"
    tar -cJf "$out/cases/cases.tar.xz" -C "$stage" .
fi
find "$out/lib" "$out/hone" "$out/hone-worker" ${tests:+"$out/bin"} -type f -exec strip {} +
cp bench/gpu/*.py bench/contest.py "$out/"
[ $# -eq 0 ] || cp -L "$@" "$out/models/"
du -sh "$out"
