# Shared by the scripts; sourced, not run.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cd "$root"

say() { printf '\n== %s\n' "$*"; }
die() { printf 'error: %s\n' "$*" >&2; exit 1; }

# Debian packages: DPDK with its drivers, what bindgen and cc need, and the tools the tests compare with.
packages=(build-essential pkg-config libclang-dev libdpdk-dev librte-net-pcap23 librte-net-ring23
          librte-net-null23 librte-net-af-packet23 librte-mempool-ring23
          iproute2 ethtool tshark python3-venv lua5.3 valgrind)

# Installs what is missing. Needs root only when something is.
install_packages() {
    local missing=() package
    for package in "${packages[@]}"; do
        dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
    done
    [ ${#missing[@]} -eq 0 ] && return
    say "installing ${missing[*]}"
    [ "$(id -u)" -eq 0 ] || die "these Debian packages are missing: ${missing[*]}. Run as root, or: apt-get install ${missing[*]}"
    apt-get update -q
    DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}"
}

# Rust is the one thing the user brings.
need_rust() {
    command -v cargo >/dev/null || die "cargo is missing: install Rust 1.91 or newer (https://rustup.rs)"
}

# At least so many huge pages of 2 MB, until the script ends.
reserve_hugepages() {
    local pages=/proc/sys/vm/nr_hugepages
    reserved=$(cat $pages)
    trap 'echo "$reserved" > /proc/sys/vm/nr_hugepages' EXIT
    [ "$reserved" -ge "$1" ] || echo "$1" > $pages
}

# scapy >= 2.6 knows the ICRC of IPv6; Debian's is older. A virtual environment of the project's own.
venv=$root/.venv
setup_venv() {
    if ! "$venv/bin/python" -c 'import scapy.contrib.roce' 2>/dev/null; then
        say "setting up scapy in .venv"
        /usr/bin/python3 -m venv "$venv"
        "$venv/bin/pip" install --quiet 'scapy>=2.6,<3'
    fi
}
