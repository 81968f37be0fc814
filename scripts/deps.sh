#!/bin/bash
# Install the Debian packages that a goal needs, only those that are missing.
#
#   scripts/deps.sh build|images|check|demo|bench|conformance|export ...    (--list prints names, --check installs nothing)
#
# The one list of packages. Works as root or through sudo; says what to install by hand where there is no apt.
set -euo pipefail

group_packages() {
    case $1 in
    build) echo gcc libc6-dev meson ninja-build pkg-config llvm-19-dev libprotobuf-c-dev protobuf-c-compiler \
        libprotobuf-dev libsqlite3-dev libcjson-dev libzip-dev libxxhash-dev libzstd-dev zlib1g-dev ;;
    images) echo libpng-dev libjpeg62-turbo-dev libtiff-dev libwebp-dev libopenjp2-7-dev ;;
    check) group_packages build; group_packages images; group_packages python; group_packages conformance
        echo g++ clang-19 libclang-rt-19-dev libcmocka-dev binutils libasan8 libubsan1 ;;
    python) echo python3 python3-venv python3-pip ca-certificates ;;
    demo | bench) group_packages build; group_packages python ;;
    conformance) echo libonnx-testdata ;;
    fuzz) group_packages build; echo clang-19 libclang-rt-19-dev ;;
    export) echo python3-torch python3-torchvision python3-onnx ;;
    *) echo "deps.sh: no group named \"$1\"" >&2; return 2 ;;
    esac
}

mode=install
groups=()
for arg; do
    case $arg in
    --list | --check) mode=${arg#--} ;;
    *) groups+=("$arg") ;;
    esac
done
[ ${#groups[@]} -gt 0 ] || { sed -n '2,6p' "$0" >&2; exit 2; }

wanted=$(for g in "${groups[@]}"; do group_packages "$g"; done | tr -s ' ' '\n' | sort -u)
if [ $mode = list ]; then
    echo "$wanted"
    exit 0
fi

if ! command -v dpkg-query >/dev/null; then
    echo "deps.sh: this is not Debian; see to it that these are installed:" >&2
    echo "$wanted" >&2
    exit 0
fi
missing=()
for p in $wanted; do
    state=$(dpkg-query -W -f '${db:Status-Status}\n' "$p" 2>/dev/null || true)
    [[ $state == *installed* && $state != *not-installed* ]] || missing+=("$p")
done
[ ${#missing[@]} -gt 0 ] || exit 0
if [ $mode = check ]; then
    echo "missing: ${missing[*]}"
    exit 1
fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || {
        echo "deps.sh: not root and no sudo; as root, run: apt-get install --no-install-recommends ${missing[*]}" >&2
        exit 1
    }
    as_root=(sudo)
fi
echo "installing: ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
apt=(env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300)
log=$(mktemp)
trap 'rm -f "$log"' EXIT
"${as_root[@]}" "${apt[@]}" update >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
"${as_root[@]}" "${apt[@]}" install -y --no-install-recommends "${missing[@]}" >"$log" 2>&1 || {
    tail -20 "$log" >&2
    echo "deps.sh: apt-get could not install: ${missing[*]}" >&2
    exit 1
}
