#!/bin/bash
# Configure a build folder if it needs it, and build it.
#
#   scripts/build.sh DIR [meson setup options ...]        (environment: CC, NINJA_TARGETS)
#
# Meson does not notice folders that appear, so the folder list and the options are remembered beside the build.
set -euo pipefail
cd "$(dirname "$0")/.."
dir=$1
shift
want=$(printf '%s\n' "${CC:-}" "$@" src/*/meson.build tests/*/meson.build cli/meson.build)
stamp=$dir/.configured
if [ ! -f "$dir/build.ninja" ] || [ ! -f "$stamp" ]; then
    [ -d "$dir/meson-private" ] && rm -rf "$dir"
    mkdir -p "$dir"
    meson setup "$dir" "$@" >"$dir/setup.log" 2>&1 || {
        cat "$dir/setup.log" >&2
        exit 1
    }
    printf '%s\n' "$want" >"$stamp"
elif [ "$want" != "$(cat "$stamp")" ]; then
    meson setup --reconfigure "$dir" "$@" >"$dir/setup.log" 2>&1 || {
        cat "$dir/setup.log" >&2
        exit 1
    }
    printf '%s\n' "$want" >"$stamp"
fi
# shellcheck disable=SC2086
exec ninja -C "$dir" ${NINJA_FLAGS:-} ${NINJA_TARGETS:-}
