# Shared by the scripts; sourced, not run.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cd "$root"

say() { printf '\n== %s\n' "$*"; }
die() { printf 'error: %s\n' "$*" >&2; exit 1; }

# Where tests and scripts write what they skipped, a line each: name, tab, need. `scripts/test` prints it at its end.
skips=${NPCC_SKIPS:-}

# skipped NAME NEED: reports that NAME was not tested. Under CI=true this fails, unless NPCC_SKIP names it (NPCC_SKIP=page,pci-guest).
skipped() {
    printf '   skipped: %s needs %s\n' "$1" "$2"
    [ -z "$skips" ] || printf '%s\t%s\n' "$1" "$2" >> "$skips"
    case ",${NPCC_SKIP:-}," in *",$1,"*) return 0 ;; esac
    [ "${CI:-}" != true ] || die "$1 was not tested: it needs $2. Provide it, or set NPCC_SKIP=$1"
}

# Debian packages: DPDK with its drivers, what bindgen and cc need, and the tools the tests compare with. A name that ends in `#`
# goes on with the number of DPDK's ABI: 23 in Debian 12, 25 in Debian 13.
packages=(build-essential pkg-config libclang-dev libdpdk-dev librte-net-pcap# librte-net-ring# librte-net-null#
          librte-net-af-packet# librte-mempool-ring# e2fsprogs iproute2 iputils-ping procps ethtool frr bird2 lldpd nats-server openssl tshark python3-venv lua5.3 valgrind shellcheck)

# What reads metrics and shows the page in tests: promtool with Prometheus, and a browser without a screen.
watch_packages=(prometheus chromium)

# What a rig with QEMU guests needs beside them.
guest_packages=(qemu-system-x86 seabios cpio kmod xz-utils)

# Where cargo puts what it builds.
built=${CARGO_TARGET_DIR:-$root/target}

# What apt and pip said.
setup_log=$root/target/setup.log

# quietly WHAT COMMAND...: one line, the log's tail where it fails.
quietly() {
    local what=$1; shift
    mkdir -p "${setup_log%/*}"
    printf '   %s\n' "$what"
    printf '== %s\n' "$what" >> "$setup_log"
    "$@" >> "$setup_log" 2>&1 && return
    tail -n 20 "$setup_log" >&2
    printf 'error: %s failed; all of it is in %s\n' "$what" "$setup_log" >&2
    return 1
}

installed() { dpkg-query -W -f='${Status}' "$1" 2>/dev/null | grep -q 'ok installed'; }

# numbered NAME: the package NAME with a number, installed if there is one, else the newest there is.
numbered() {
    { dpkg-query -W -f='${db:Status-Status} ${Package}\n' "$1*" 2>/dev/null | awk '$1 == "installed" { print $2 }'
      apt-cache pkgnames "$1" | sort -rV; } | awk -v name="$1" '$0 ~ "^" name "-?[0-9]+$" { print; exit }'
}

# Installs what is missing. Needs root only when something is.
install_packages() {
    local missing=() package wanted updated=no
    for package in "${packages[@]}"; do
        wanted=$package
        if [ "${package%#}" != "$package" ]; then
            wanted=$(numbered "${package%#}")
            if [ -z "$wanted" ] && [ "$(id -u)" -eq 0 ] && [ $updated = no ]; then
                quietly "reading the package lists" apt-get update -q || return 1
                updated=yes
                wanted=$(numbered "${package%#}")
            fi
            [ -n "$wanted" ] || wanted=${package%#}
        fi
        installed "$wanted" || missing+=("$wanted")
    done
    [ ${#missing[@]} -eq 0 ] && return
    say "installing ${missing[*]}"
    [ "$(id -u)" -eq 0 ] || die "these Debian packages are missing: ${missing[*]}. Run as root, or: apt-get install ${missing[*]}"
    [ $updated = yes ] || quietly "reading the package lists" apt-get update -q || return 1
    quietly "installing ${#missing[@]} packages and what they need" \
        env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}"
}

# Packages that link no DPDK, and need none to be built or tested.
plain_packages=(-p npcc-pipeline -p npcc-roce -p npcc-cnp -p npcc-config -p npcc-doctor -p npcc-feed -p npcc-linux -p npcc-sim -p npcc-heap -p npcc-simd -p npcc-card -p npcc-testkit)

need_nextest() {
    cargo nextest --version >/dev/null 2>&1 || quietly "installing cargo-nextest" cargo install --locked cargo-nextest
}

# nextest ARGUMENTS...: each test in a process of its own, as .config/nextest.toml says.
nextest() {
    need_nextest
    cargo nextest run "$@"
}

formatting() {
    if cargo fmt --version >/dev/null 2>&1; then
        cargo fmt --all --check
    else
        skipped formatting "rustfmt (rustup component add rustfmt)"
    fi
}

# lints PACKAGES...: clippy on all targets of the packages.
lints() {
    if cargo clippy --version >/dev/null 2>&1; then
        cargo clippy "$@" --all-targets --quiet -- -D warnings
    else
        skipped lints "clippy (rustup component add clippy)"
    fi
}

# Rust is the one thing the user brings.
need_rust() {
    command -v cargo >/dev/null || die "cargo is missing: install Rust 1.91 or newer (https://rustup.rs)"
}

# debug_switch: the switch as the tests have it, in $switch. With NPCC_SWITCH that program is taken, and nothing is built: alone, the root
# package has other features of its dependencies than in the workspace, so most of the workspace would be built again.
debug_switch() {
    switch=${NPCC_SWITCH:-$built/debug/npcc-switch}
    [ -n "${NPCC_SWITCH:-}" ] || cargo build --quiet --bin npcc-switch
}

# reserve_hugepages PAGES [LEAST]: huge pages of 2 MB and a place for files in them, until the script ends; false where the kernel gives
# fewer than LEAST, or than PAGES without it. Memory that is in pieces is compacted, in the end without what the kernel caches of files.
reserve_hugepages() {
    local pages=/proc/sys/vm/nr_hugepages mounted= means
    reserved=$(cat $pages)
    mountpoint -q /dev/hugepages || { mkdir -p /dev/hugepages && mount -t hugetlbfs none /dev/hugepages && mounted=yes; } 2>/dev/null
    trap "echo $reserved > $pages${mounted:+; umount /dev/hugepages}" EXIT
    for means in "" compact_memory drop_caches compact_memory; do
        [ -z "$means" ] || { echo 1 > /proc/sys/vm/$means; } 2>/dev/null
        [ "$(cat $pages)" -ge "$1" ] || { echo "$1" > $pages; } 2>/dev/null
        [ "$(cat $pages)" -lt "$1" ] || return 0
    done
    [ "$(cat $pages)" -ge "${2:-$1}" ] && return
    printf 'error: the kernel gives %s huge pages of 2 MB, and %s are needed\n' "$(cat $pages)" "${2:-$1}" >&2
    return 1
}

# scapy >= 2.6 knows the ICRC of IPv6; Debian's is older. jsonschema reads what npcc-feed publishes. A virtual environment of the project's own.
venv=$root/.venv
setup_venv() {
    if ! "$venv/bin/python" -c 'import jsonschema, scapy.contrib.roce' 2>/dev/null; then
        say "setting up scapy and jsonschema in .venv"
        quietly "a virtual environment" /usr/bin/python3 -m venv "$venv"
        quietly "scapy 2.6, jsonschema 4" "$venv/bin/pip" install --quiet 'scapy>=2.6,<3' 'jsonschema>=4.17,<5'
    fi
}

# guest_image RIG: kernel and initramfs of tests/RIG's guests, in the folder $image; false where their packages cannot be had.
guest_image() {
    local source
    image=$root/target/$1
    for source in tests/guest/{initramfs,init} "tests/$1"/{contents,setup}; do
        if [ "$source" -nt "$image/initramfs.cpio" ]; then
            say "making the guests from Debian packages"
            tests/guest/initramfs "$image" "$1" || return 1
            break
        fi
    done
}

# guest_rig RIG ARGUMENTS...: runs the rig of tests/RIG.
guest_rig() {
    local rig=$1; shift
    PYTHONPATH=$root/tests/guest /usr/bin/python3 -B "tests/$rig/rig.py" "$@"
}
