//! Tests that reproduce each finding once, by one change of a host that has none. The host and all changes of it are one file.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test says what is wrong by panicking"
)]

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;

use npcc_config::Config;
use npcc_doctor::{Check, Diagnosis, DriverFile, Host, Mend, RunningPort, Severity, examine};
use tempfile::TempDir;

const CONFIG: &str = "version: 1
cores: { control: 2, workers: [3] }
dpdk: { hugepages: on }
ports:
  - { name: dc0, device: \"0000:3b:00.0\", mac: \"02:00:00:00:01:01\", addresses: [10.0.1.1/24], vlans: [ { id: 100, addresses: [10.0.100.1/24] } ] }
  - { name: dc1, device: \"0000:5e:00.0\", addresses: [10.0.2.1/24] }
  - { name: wan0, device: \"net_af_packet0,iface=eth1,blocksz=73728,framesz=9216,framecnt=512\", speed: 10G, addresses: [10.0.12.1/24] }
buffer: { pool: 64MB }
qos: { profile: roce-lossless }
telemetry: { socket: /run/npcc-switch.sock }
";

const DRIVERS: &str = "/usr/lib/dpdk/pmds-23.0";

const ETHTOOL_L: &str = "Channel parameters for eth1:
Pre-set maximums:
RX:\t\tn/a
TX:\t\tn/a
Other:\t\t1
Combined:\t63
Current hardware settings:
RX:\t\tn/a
Combined:\t1
";

/// Test host, and the switch's configuration on it.
struct Tree {
    dir: TempDir,
    config: String,
    /// File handles that must live as long as the host.
    held: Vec<fs::File>,
    listeners: Vec<UnixListener>,
    /// Ports of the running switch.
    running: Vec<RunningPort>,
}

impl Tree {
    fn path(&self, path: &str) -> PathBuf {
        self.dir.path().join(path.trim_start_matches('/'))
    }

    fn file(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn folder(&self, path: &str) {
        fs::create_dir_all(self.path(path)).unwrap();
    }

    fn remove(&self, path: &str) {
        let path = self.path(path);
        let gone = fs::remove_file(&path).or_else(|_| fs::remove_dir_all(&path));
        gone.unwrap();
    }

    fn link(&self, path: &str, target: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let _ = fs::remove_file(&path);
        symlink(target, path).unwrap();
    }

    fn answer(&self, command: &str, text: &str) {
        self.file(&format!("commands/{}", command.replace('/', "%")), text);
    }

    fn edit(&mut self, from: &str, to: &str) {
        assert!(self.config.contains(from), "{from}");
        self.config = self.config.replace(from, to);
    }

    fn config(&self) -> Config {
        let parsed = npcc_config::parse("switch.yaml", &self.config);
        parsed.unwrap_or_else(|report| panic!("{report}")).config
    }

    fn diagnosis(&self) -> Diagnosis {
        let driver = |port: &str, driver: &str, kernel: &str| DriverFile {
            port: port.to_owned(),
            driver: driver.to_owned(),
            folder: DRIVERS.into(),
            file: format!("librte_{driver}.so"),
            package: format!("librte-{}23", driver.replace('_', "-")),
            kernel: kernel.to_owned(),
        };
        let host = Host::tree(self.dir.path());
        let mut drivers = vec![driver("wan0", "net_af_packet", "vfio-pci")];
        for (port, address) in [("dc0", "0000:3b:00.0"), ("dc1", "0000:5e:00.0")] {
            drivers.extend(match host.card(address) {
                Some((0x8086, 0x159b)) => Some(driver(port, "net_ice", "vfio-pci")),
                Some((0x8086, 0x158b)) => Some(driver(port, "net_i40e", "vfio-pci")),
                Some((0x15b3, 0x1017)) => Some(driver(port, "net_mlx5", "mlx5_core")),
                _ => None,
            });
        }
        examine(&host, Some(&self.config()), &drivers).with_running(&self.running)
    }

    /// Makes the card of port dc0 a ConnectX that the kernel shares, with the interface eth7 as it should be.
    fn connectx(&self) {
        let device = "sys/bus/pci/devices/0000:3b:00.0";
        self.file(&format!("{device}/vendor"), "0x15b3\n");
        self.file(&format!("{device}/device"), "0x1017\n");
        self.link(&format!("{device}/driver"), "../../drivers/mlx5_core");
        self.folder(&format!("{device}/net/eth7"));
        self.file("sys/class/net/eth7/flags", "0x1003\n");
        self.file("sys/class/net/eth7/mtu", "9100\n");
        self.answer("dcb -j pfc show dev eth7", "{\"prio_pfc\":[]}");
        self.roce(false);
        self.interfaces(
            "ip -j addr show",
            &[
                ("eth1", "52:54:00:00:00:02", ""),
                ("eth7", "52:54:00:00:00:07", ""),
            ],
        );
    }

    /// Sets what devlink says of the ConnectX's RDMA device.
    fn roce(&self, on: bool) {
        self.answer(
            "devlink -j dev param show pci/0000:3b:00.0 name enable_roce",
            &format!("{{\"param\":{{\"pci/0000:3b:00.0\":[{{\"name\":\"enable_roce\",\"type\":\"generic\",\"values\":[{{\"cmode\":\"driverinit\",\"value\":{on}}}]}}]}}}}"),
        );
    }

    /// Creates a host without any finding.
    fn healthy() -> Tree {
        let tree = Tree {
            dir: tempfile::tempdir().unwrap(),
            config: CONFIG.to_owned(),
            held: Vec::new(),
            listeners: Vec::new(),
            running: Vec::new(),
        };
        tree.file(
            "proc/self/mounts",
            "none /dev/hugepages hugetlbfs rw 0 0\nproc /proc proc rw 0 0\n",
        );
        tree.folder("dev/hugepages");
        tree.file(
            "proc/cpuinfo",
            "vendor_id\t: GenuineIntel\nflags\t\t: fpu constant_tsc nonstop_tsc aes\n",
        );
        tree.file(
            "sys/devices/system/clocksource/clocksource0/current_clocksource",
            "tsc\n",
        );
        tree.file(
            "sys/devices/system/clocksource/clocksource0/available_clocksource",
            "tsc hpet acpi_pm \n",
        );
        tree.hugepages("sys/kernel/mm/hugepages", 4096);
        tree.hugepages("sys/devices/system/node/node0/hugepages", 4096);
        tree.cores();
        for (address, group) in [("0000:3b:00.0", "14"), ("0000:5e:00.0", "15")] {
            tree.card(address, "vfio-pci", group);
        }
        for driver in ["af_packet", "ice", "i40e", "mlx5"] {
            tree.file(&format!("{DRIVERS}/librte_net_{driver}.so"), "");
        }
        tree.link("lib/firmware/intel/ice/ddp/ice.pkg", "ice-1.3.30.0.pkg");
        tree.file("sys/class/net/eth1/flags", "0x1003\n");
        tree.file("sys/class/net/eth1/mtu", "9100\n");
        tree.answer(
            "ethtool -a eth1",
            "Pause parameters for eth1:\nAutonegotiate:\toff\nRX:\t\toff\nTX:\t\toff\n\n",
        );
        tree.answer("ethtool -k eth1", "Features for eth1:\ngeneric-receive-offload: off\nlarge-receive-offload: off [fixed]\n");
        tree.answer("ethtool -l eth1", ETHTOOL_L);
        tree.answer(
            "dcb -j pfc show dev eth1",
            "{\"pfc_cap\":8,\"prio_pfc\":[]}",
        );
        tree.interfaces(
            "ip -j addr show",
            &[
                ("eth0", "52:54:00:00:00:01", "192.0.2.7"),
                ("eth1", "52:54:00:00:00:02", ""),
            ],
        );
        tree.file("proc/sys/net/ipv6/conf/eth1/disable_ipv6", "0\n");
        tree.file("etc/group", "root:x:0:\nnpcc:x:997:\nnpcc-ro:x:996:\n");
        tree.file(
            "proc/net/unix",
            "Num RefCount Protocol Flags Type St Inode Path\n",
        );
        tree.folder("run");
        tree
    }

    fn hugepages(&self, folder: &str, free: u64) {
        self.file(&format!("{folder}/hugepages-2048kB/nr_hugepages"), "4096\n");
        self.file(
            &format!("{folder}/hugepages-2048kB/free_hugepages"),
            &format!("{free}\n"),
        );
    }

    fn cores(&self) {
        let cpu = "sys/devices/system/cpu";
        for (file, text) in [
            ("online", "0-7\n"),
            ("isolated", "2-3\n"),
            ("nohz_full", "2-3\n"),
        ] {
            self.file(&format!("{cpu}/{file}"), text);
        }
        for core in 0..8 {
            self.file(
                &format!("{cpu}/cpu{core}/topology/thread_siblings_list"),
                &format!("{core}\n"),
            );
            self.file(
                &format!("{cpu}/cpu{core}/cpufreq/scaling_governor"),
                "performance\n",
            );
        }
        self.file("sys/devices/system/node/node0/cpulist", "0-7\n");
    }

    fn card(&self, address: &str, driver: &str, group: &str) {
        let device = format!("sys/bus/pci/devices/{address}");
        for (file, text) in [
            ("numa_node", "0\n"),
            ("vendor", "0x8086\n"),
            ("device", "0x159b\n"),
            ("current_link_width", "16\n"),
            ("max_link_width", "16\n"),
        ] {
            self.file(&format!("{device}/{file}"), text);
        }
        self.link(
            &format!("{device}/driver"),
            &format!("../../drivers/{driver}"),
        );
        self.link(
            &format!("{device}/iommu_group"),
            &format!("/sys/kernel/iommu_groups/{group}"),
        );
        self.folder(&format!(
            "sys/kernel/iommu_groups/{group}/devices/{address}"
        ));
    }

    /// Writes a command's output: name, MAC and IP address of each interface; those without have a link-local one alone.
    fn interfaces(&self, command: &str, all: &[(&str, &str, &str)]) {
        let one = |(name, mac, ip): &(&str, &str, &str)| {
            let (ip, scope) = match *ip {
                "" => ("fe80::1", "link"),
                ip => (ip, "global"),
            };
            format!(
                "{{\"ifname\":\"{name}\",\"address\":\"{mac}\",\"addr_info\":[{{\"local\":\"{ip}\",\"prefixlen\":24,\"scope\":\"{scope}\"}}]}}"
            )
        };
        let all: Vec<String> = all.iter().map(one).collect();
        self.answer(command, &format!("[{}]", all.join(",")));
    }

    /// Creates a socket on which a switch listens, which has disabled IPv6 under its port.
    fn listening(&mut self, path: &str) {
        self.file("proc/sys/net/ipv6/conf/eth1/disable_ipv6", "1\n");
        self.listeners
            .push(UnixListener::bind(self.path(path)).unwrap());
        self.file(
            "proc/net/unix",
            &format!("Num RefCount Protocol Flags Type St Inode Path\n0000000000000000: 00000002 00000000 00010000 0001 01 12345 {path}\n"),
        );
    }
}

/// Changes the host so that exactly this finding appears.
fn break_it(check: Check, tree: &mut Tree) {
    const DC0: &str = "sys/bus/pci/devices/0000:3b:00.0";
    const CPU: &str = "sys/devices/system/cpu";
    const CLOCK: &str = "sys/devices/system/clocksource/clocksource0";
    match check {
        Check::HugepagesFew => tree.hugepages("sys/kernel/mm/hugepages", 40),
        Check::HugepagesNode => tree.hugepages("sys/devices/system/node/node0/hugepages", 40),
        Check::HugepagesUnmounted => tree.file("proc/self/mounts", "proc /proc proc rw 0 0\n"),
        Check::HugepagesLeftover => {
            tree.file("dev/hugepages/npcc-1map_0", "dead");
            tree.file("dev/hugepages/npcc-2map_0", "alive");
            let alive = fs::File::open(tree.path("dev/hugepages/npcc-2map_0")).unwrap();
            alive.lock_shared().unwrap();
            tree.held.push(alive);
        }
        Check::DeviceMissing => tree.remove(DC0),
        Check::DriverBinding => tree.link(&format!("{DC0}/driver"), "../../drivers/ice"),
        Check::DriverMissing => tree.remove(&format!("{DRIVERS}/librte_net_af_packet.so")),
        Check::FirmwareMissing => {
            tree.edit("0000:5e:00.0", "0000:5e:00.0,safe-mode-support=1");
            tree.remove("lib/firmware/intel");
        }
        Check::IommuOff => tree.remove(&format!("{DC0}/iommu_group")),
        Check::IommuUnsafe => {
            tree.remove(&format!("{DC0}/iommu_group"));
            tree.file(
                "sys/module/vfio/parameters/enable_unsafe_noiommu_mode",
                "Y\n",
            );
        }
        Check::IommuGroup => tree.card("0000:3b:00.1", "ice", "14"),
        Check::Numa => {
            tree.file(&format!("{DC0}/numa_node"), "1\n");
            tree.file("sys/devices/system/node/node0/cpulist", "0-3\n");
            tree.file("sys/devices/system/node/node1/cpulist", "4-7\n");
        }
        Check::PcieWidth => tree.file(&format!("{DC0}/current_link_width"), "8\n"),
        Check::NicPause => tree.file(&format!("{DC0}/device"), "0x158b\n"),
        Check::NicQueues => {
            tree.edit("workers: [3]", "workers: [3, 4]");
            for file in ["isolated", "nohz_full"] {
                tree.file(&format!("{CPU}/{file}"), "2-4\n");
            }
            tree.answer("ethtool -l eth1", &ETHTOOL_L.replace("63", "1"));
        }
        Check::CoreMissing => {
            tree.edit("workers: [3]", "workers: [9]");
            tree.file("sys/devices/system/node/node0/cpulist", "0-15\n");
        }
        Check::CoreNotIsolated => tree.file(&format!("{CPU}/isolated"), "2\n"),
        Check::CoreTick => tree.file(&format!("{CPU}/nohz_full"), " (null)\n"),
        Check::CoreSibling => {
            tree.file(
                &format!("{CPU}/cpu3/topology/thread_siblings_list"),
                "3,7\n",
            );
        }
        Check::Governor => tree.file(
            &format!("{CPU}/cpu3/cpufreq/scaling_governor"),
            "powersave\n",
        ),
        Check::ClockSource => tree.file(&format!("{CLOCK}/current_clocksource"), "hpet\n"),
        Check::TscInvariant => tree.file("proc/cpuinfo", "flags\t\t: fpu constant_tsc aes\n"),
        other => break_system(other, tree),
    }
}

/// Changes interfaces, addresses or sockets so that exactly this finding appears.
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn break_system(check: Check, tree: &mut Tree) {
    match check {
        Check::InterfaceMissing => tree.remove("sys/class/net/eth1"),
        Check::NicRoce => {
            tree.edit(
                "addresses: [10.0.1.1/24],",
                "addresses: [10.0.1.1/24], pfc: off,",
            );
            tree.connectx();
            tree.roce(true);
        }
        Check::InterfaceNamespace => {
            tree.edit(
                "addresses: [10.0.1.1/24],",
                "addresses: [10.0.1.1/24], pfc: off,",
            );
            tree.connectx();
            tree.interfaces("ip -j addr show", &[("eth1", "52:54:00:00:00:02", "")]);
        }
        Check::InterfaceDown => tree.file("sys/class/net/eth1/flags", "0x1002\n"),
        Check::InterfaceMtu => tree.file("sys/class/net/eth1/mtu", "1500\n"),
        Check::InterfaceMerges => tree.answer(
            "ethtool -k eth1",
            "Features for eth1:\ngeneric-receive-offload: on\n",
        ),
        Check::InterfaceSegments => tree.answer(
            "ip -d -j link show dev eth1",
            "[{\"ifname\":\"eth1\",\"linkinfo\":{\"info_kind\":\"macvlan\"}}]",
        ),
        Check::InterfaceAnswers => tree.interfaces(
            "ip -j addr show",
            &[("eth1", "52:54:00:00:00:02", "192.0.2.8")],
        ),
        Check::LinkPause => tree.answer(
            "ethtool -a eth1",
            "Pause parameters for eth1:\nAutonegotiate:\ton\nRX:\t\ton\nTX:\t\toff\n",
        ),
        Check::DcbPfc => tree.answer(
            "dcb -j pfc show dev eth1",
            "{\"pfc_cap\":8,\"prio_pfc\":[3]}",
        ),
        Check::MacClash => tree.interfaces(
            "ip -j addr show",
            &[("eth0", "02:00:00:00:01:01", "192.0.2.7")],
        ),
        Check::AddressClash => tree.interfaces(
            "ip -j addr show",
            &[("eth0", "52:54:00:00:00:01", "10.0.100.1")],
        ),
        Check::SviMac => {
            tree.config += "linux: { integrate: true }\n";
            let all = [
                ("dc0", "02:00:00:00:01:01", "10.0.1.1"),
                ("dc0.100", "02:00:00:00:01:09", "10.0.100.1"),
            ];
            tree.interfaces("ip -n npcc -j addr show", &all);
        }
        Check::GroupMissing => tree.file("etc/group", "root:x:0:\nnpcc:x:997:\n"),
        Check::SocketFolder => tree.remove("run"),
        Check::RecorderMemory => {
            tree.answer("findmnt -n -o FSTYPE -T /run", "ext4\n");
            tree.answer("findmnt -n -o FSTYPE -T /dev/shm", "tmpfs\n");
        }
        Check::SocketLeftover => {
            tree.listening("/run/npcc-switch.sock");
            tree.file(
                "proc/net/unix",
                "Num RefCount Protocol Flags Type St Inode Path\n",
            );
        }
        Check::SocketRights => tree.listening("/run/npcc-switch.sock"),
        Check::TransmitStalled => tree.running.push(RunningPort {
            port: "wan0".to_owned(),
            stalled_ms: 30,
            cut: 0,
        }),
        Check::FramesCut => tree.running.push(RunningPort {
            port: "dc0".to_owned(),
            stalled_ms: 0,
            cut: 3,
        }),
        other => panic!("nothing breaks {other:?}"),
    }
}

#[test]
fn a_host_as_it_should_be_has_no_findings() {
    let diagnosis = Tree::healthy().diagnosis();
    assert_eq!(diagnosis.findings, []);
    assert!(diagnosis.is_well() && diagnosis.configured);
    assert_eq!(diagnosis.to_string(), "0 errors, 0 warnings, 0 notes\n");
}

#[test]
fn a_recorder_that_a_kill_would_lose_is_warned_of() {
    let tree = Tree::healthy();
    tree.answer("findmnt -n -o FSTYPE -T /run", "ext4\ntmpfs\n");
    assert_eq!(tree.diagnosis().findings, []);
    tree.answer("findmnt -n -o FSTYPE -T /run", "overlay\n");
    tree.answer("findmnt -n -o FSTYPE -T /dev/shm", "overlay\n");
    let diagnosis = tree.diagnosis();
    let [finding] = &diagnosis.findings[..] else {
        panic!("{diagnosis}");
    };
    assert_eq!(finding.severity, Severity::Warning);
    assert!(
        finding.what.contains("after SIGKILL is lost"),
        "{diagnosis}"
    );
}

#[test]
fn each_finding_happens_once_alone_and_says_what_mends_it() {
    for check in Check::ALL {
        let mut tree = Tree::healthy();
        break_it(check, &mut tree);
        let diagnosis = tree.diagnosis();
        let found: Vec<Check> = diagnosis.findings.iter().map(|one| one.check).collect();
        assert_eq!(found, [check], "{diagnosis}");
        let one = &diagnosis.findings[0];
        assert!(!one.mend.command().is_empty() && !one.what.is_empty() && !one.place.is_empty());
        assert!(diagnosis.to_string().contains(one.mend.command()));
        assert_eq!(diagnosis.is_well(), one.severity == Severity::Note);
        let json = serde_json::to_value(&diagnosis).unwrap();
        assert_eq!(json["findings"][0]["check"], check.name());
    }
}

#[test]
fn a_veth_hands_frames_over_one_by_one_unless_it_has_a_program_of_others() {
    let findings = |program: &str| {
        let tree = Tree::healthy();
        tree.answer(
            "ip -d -j link show dev eth1",
            &format!("[{{\"linkinfo\":{{\"info_kind\":\"veth\"}}{program}}}]"),
        );
        let findings = tree.diagnosis().findings;
        findings.iter().map(|one| one.check).collect::<Vec<_>>()
    };
    assert_eq!(findings(""), []);
    assert_eq!(findings(",\"xdp\":{\"prog\":{\"name\":\"npcc_pass\"}}"), []);
    let others = findings(",\"xdp\":{\"prog\":{\"name\":\"filter\"}}");
    assert_eq!(others, [Check::InterfaceSegments]);
}

#[test]
fn what_mends_is_the_command_for_this_host() {
    let mend = |check: Check, more: &dyn Fn(&mut Tree)| {
        let mut tree = Tree::healthy();
        break_it(check, &mut tree);
        more(&mut tree);
        tree.diagnosis().findings[0].mend.clone()
    };
    let nothing = |_: &mut Tree| {};
    let leftover = mend(Check::HugepagesLeftover, &nothing);
    assert_eq!(
        leftover,
        Mend::Now("rm -f /dev/hugepages/npcc-1map_0".to_owned())
    );
    let few = mend(Check::HugepagesFew, &nothing);
    // 4,056 pages are others'; the packets and DPDK's own come on top.
    let pages = 4056 + npcc_config::Sizing::of(&Tree::healthy().config()).hugepages();
    assert!(
        few.command()
            .contains(&format!("vm.nr_hugepages = {pages}'")),
        "{few}"
    );
    let bind = mend(Check::DriverBinding, &nothing);
    assert!(
        matches!(&bind, Mend::Now(command) if command.contains("echo 0000:3b:00.0 > /sys/bus/pci/drivers_probe"))
    );
    let bind = mend(Check::DriverBinding, &|tree| {
        tree.file("usr/sbin/driverctl", "")
    });
    assert_eq!(
        bind.command(),
        "driverctl set-override 0000:3b:00.0 vfio-pci"
    );
    let amd = mend(Check::IommuOff, &|tree| {
        tree.file(
            "proc/cpuinfo",
            "vendor_id\t: AuthenticAMD\nflags\t: constant_tsc nonstop_tsc\n",
        );
    });
    assert!(amd.command().contains("amd_iommu=on iommu=pt"), "{amd}");
}

/// A script must not cut off an operator who manages the host through that card.
#[test]
fn a_host_is_not_told_to_isolate_all_of_its_cores() {
    let tree = Tree::healthy();
    tree.file("sys/devices/system/cpu/online", "2-3\n");
    tree.file("sys/devices/system/cpu/isolated", "\n");
    tree.file("sys/devices/system/cpu/nohz_full", "\n");
    let diagnosis = tree.diagnosis();
    let all = diagnosis.findings.iter().map(|one| one.check);
    assert_eq!(all.collect::<Vec<_>>(), [Check::CoreNotIsolated]);
    let [only] = &diagnosis.findings[..] else {
        panic!("{diagnosis}");
    };
    assert!(only.what.contains("all cores of this host"), "{diagnosis}");
    assert!(matches!(&only.mend, Mend::ByHand(command) if !command.contains("isolcpus")));
}

#[test]
fn a_card_with_addresses_is_not_bound_without_somebody_deciding() {
    let mut tree = Tree::healthy();
    break_it(Check::DriverBinding, &mut tree);
    tree.folder("sys/bus/pci/devices/0000:3b:00.0/net/eth0");
    let diagnosis = tree.diagnosis();
    assert!(
        matches!(diagnosis.findings[0].mend, Mend::ByHand(_)),
        "{diagnosis}"
    );
    assert!(diagnosis.commands().starts_with("# by hand: "));
}

/// Earlier defect: PFC of the kernel was advised on a ConnectX, where nothing shows that it changes the result.
#[test]
fn a_card_that_the_kernel_shares_is_not_lossless_by_the_kernels_pause() {
    let mut tree = Tree::healthy();
    tree.connectx();
    let set = |tree: &Tree, on: &str| {
        let text = format!("{{\"prio_pfc\":[{on}]}}");
        tree.answer("dcb -j pfc show dev eth7", &text);
    };
    let found = |tree: &Tree| {
        let findings = tree.diagnosis().findings.into_iter();
        findings
            .map(|one| (one.check, one.severity))
            .collect::<Vec<_>>()
    };
    let refused = (Check::NicPause, Severity::Error);
    set(&tree, "");
    assert_eq!(found(&tree), [refused]);
    set(&tree, "3");
    let found_too = (Check::DcbPfc, Severity::Note);
    assert_eq!(found(&tree), [refused, found_too]);
    let text = tree.diagnosis().to_string();
    assert!(
        !text.contains("3:on") && !text.contains("mlnx_qos"),
        "{text}"
    );
    tree.edit("mac: \"02:00:00:00:01:01\"", "pfc: send");
    assert_eq!(found(&tree)[0], (Check::NicPause, Severity::Warning));
    tree.edit("pfc: send", "pfc: off");
    assert_eq!(found(&tree), []);
}

#[test]
fn a_virtual_function_has_no_pause_whatever_its_identity() {
    let tree = Tree::healthy();
    assert_eq!(
        npcc_doctor::rejected_ports(&Host::tree(tree.dir.path()), &tree.config()),
        [""; 0]
    );
    tree.folder("sys/bus/pci/devices/0000:5e:00.0/physfn");
    let [message] = &npcc_doctor::rejected_ports(&Host::tree(tree.dir.path()), &tree.config())[..]
    else {
        panic!("{}", tree.diagnosis());
    };
    assert!(message.starts_with("port dc1: ") && message.contains("virtual function"));
}

/// Earlier defect: MTU and state of the interface were looked at under packet sockets only.
#[test]
fn the_interface_of_a_shared_card_must_be_up_and_take_the_ports_frames() {
    let mut tree = Tree::healthy();
    tree.connectx();
    tree.edit("roce-lossless", "roce-semi-lossless");
    tree.file("sys/class/net/eth7/flags", "0x1002\n");
    tree.file("sys/class/net/eth7/mtu", "1500\n");
    let found = |tree: &Tree| {
        let findings = tree.diagnosis().findings.into_iter();
        findings
            .map(|one| (one.check, one.severity, one.mend))
            .collect::<Vec<_>>()
    };
    let up = Mend::Now("ip link set dev eth7 up".to_owned());
    let mtu = Mend::Now("ip link set dev eth7 mtu 9100".to_owned());
    let down = (Check::InterfaceDown, Severity::Error, up);
    let before = (Check::InterfaceMtu, Severity::Note, mtu.clone());
    assert_eq!(found(&tree), [down.clone(), before]);
    // The switch sets the MTU as it starts: a smaller one beside a running switch was set after that.
    tree.listening("/run/npcc-switch.sock");
    assert!(found(&tree).contains(&(Check::InterfaceMtu, Severity::Error, mtu)));
    // The interface of a virtual function's port is not the switch's.
    tree.folder("sys/bus/pci/devices/0000:3b:00.0/net/eth7_0");
    tree.file("sys/class/net/eth7_0/phys_port_name", "pf0vf0\n");
    tree.file("sys/class/net/eth7_0/flags", "0x1002\n");
    let downs = found(&tree)
        .into_iter()
        .filter(|one| one.0 == Check::InterfaceDown);
    assert_eq!(downs.collect::<Vec<_>>(), [down]);
}

#[test]
fn a_shared_card_without_an_interface_here_is_found() {
    let mut tree = Tree::healthy();
    tree.connectx();
    tree.edit("roce-lossless", "roce-semi-lossless");
    let found = |tree: &Tree| {
        let findings = tree.diagnosis().findings.into_iter();
        findings.map(|one| one.check).collect::<Vec<_>>()
    };
    assert_eq!(found(&tree), []);
    tree.remove("sys/bus/pci/devices/0000:3b:00.0/net/eth7");
    assert_eq!(found(&tree), [Check::InterfaceNamespace]);
    tree.remove("sys/bus/pci/devices/0000:3b:00.0/net");
    assert_eq!(found(&tree), [Check::InterfaceNamespace]);
}

/// A ConnectX that is bound to vfio-pci, or to nothing, is not DPDK's: it wants its kernel driver back.
#[test]
fn a_shared_card_is_bound_to_its_kernel_driver() {
    let mut tree = Tree::healthy();
    tree.connectx();
    tree.edit("roce-lossless", "roce-semi-lossless");
    let driver = "sys/bus/pci/devices/0000:3b:00.0/driver";
    for other in [Some("../../drivers/vfio-pci"), None] {
        match other {
            Some(other) => tree.link(driver, other),
            None => tree.remove(driver),
        }
        let diagnosis = tree.diagnosis();
        let [finding] = &diagnosis.findings[..] else {
            panic!("{diagnosis}");
        };
        assert_eq!(finding.check, Check::DriverBinding);
        let command = finding.mend.command();
        assert!(
            command.contains("mlx5_core") && !command.contains("vfio-pci"),
            "{command}"
        );
    }
}

#[test]
fn a_cards_plugin_that_is_not_installed_is_found() {
    let tree = Tree::healthy();
    tree.remove(&format!("{DRIVERS}/librte_net_ice.so"));
    let diagnosis = tree.diagnosis();
    let all: Vec<_> = diagnosis
        .findings
        .iter()
        .map(|one| (one.check, one.mend.command()))
        .collect();
    let missing = (Check::DriverMissing, "apt-get install librte-net-ice23");
    assert_eq!(all, [missing, missing], "{diagnosis}");
}

/// The names that the driver looks for: any card's, one card's by its serial number, and what EAL unpacks.
#[test]
fn the_firmware_of_an_e810_is_looked_for_as_its_driver_does() {
    let mut tree = Tree::healthy();
    let has = |tree: &Tree| tree.diagnosis().findings.is_empty();
    tree.remove("lib/firmware/intel");
    tree.file("lib/firmware/intel/ice/ddp/ice-1.3.30.0.pkg", "");
    assert!(!has(&tree));
    for name in [
        "intel/ice/ddp/ice.pkg.xz",
        "updates/intel/ice/ddp/ice.pkg",
        "intel/ice/ddp/ice-b49691ffffab1234.pkg",
    ] {
        let path = format!("lib/firmware/{name}");
        tree.file(&path, "");
        assert!(has(&tree), "{name}");
        tree.remove(&path);
    }
    for (release, package) in [
        ("12", "firmware-misc-nonfree"),
        ("13", "firmware-intel-misc"),
    ] {
        tree.file("etc/os-release", &format!("VERSION_ID=\"{release}\"\n"));
        let command = tree.diagnosis().findings[0].mend.command().to_owned();
        assert!(
            command.starts_with(&format!("apt-get install {package} ")),
            "{command}"
        );
    }
    tree.edit("0000:3b:00.0", "0000:3b:00.0,safe-mode-support=1");
    tree.edit("0000:5e:00.0", "0000:5e:00.0,safe-mode-support=1");
    assert!(has(&tree));
}

/// Returns what is found about an interface that answers beside the switch: its description and remedy.
fn answering(tree: &Tree) -> Vec<(String, Mend)> {
    let findings = tree.diagnosis().findings.into_iter();
    let answers = findings.filter(|one| one.check == Check::InterfaceAnswers);
    answers.map(|one| (one.what, one.mend)).collect()
}

/// The switch disables IPv6 under a port of `net_af_packet` as it starts: only a running one is disturbed by it.
#[test]
fn ipv6_under_a_port_is_found_while_the_switch_runs() {
    let mut tree = Tree::healthy();
    assert_eq!(answering(&tree), []);
    tree.listening("/run/npcc-switch.sock");
    assert_eq!(answering(&tree), []);
    tree.file("proc/sys/net/ipv6/conf/eth1/disable_ipv6", "0\n");
    let [(what, mend)] = &answering(&tree)[..] else {
        panic!("{}", tree.diagnosis());
    };
    assert!(what.contains("IPv6"), "{what}");
    let command = "sysctl -w net/ipv6/conf/eth1/disable_ipv6=1".to_owned();
    assert_eq!(*mend, Mend::Now(command));
    tree.file("proc/sys/net/ipv6/conf/eth1/disable_ipv6", "1\n");
    assert_eq!(answering(&tree), []);
    // Without IPv6 in the kernel there is no such file.
    tree.remove("proc/sys/net/ipv6/conf/eth1/disable_ipv6");
    assert_eq!(answering(&tree), []);
}

#[test]
fn addresses_under_a_port_are_named_and_taken_by_hand() {
    let mut tree = Tree::healthy();
    let eth1 = |tree: &Tree, ip| {
        let all = [("eth1", "52:54:00:00:00:02", ip)];
        tree.interfaces("ip -j addr show", &all);
    };
    for ip in ["192.0.2.8", "2001:db8::8"] {
        eth1(&tree, ip);
        let [(what, mend)] = &answering(&tree)[..] else {
            panic!("{}", tree.diagnosis());
        };
        assert!(what.contains(ip), "{what}");
        assert!(matches!(mend, Mend::ByHand(command) if command.contains("flush dev eth1")));
    }
    // The kernel answers with another MAC address than the port's.
    tree.edit(
        "framecnt=512\",",
        "framecnt=512\", mac: \"02:00:00:00:12:01\",",
    );
    assert_eq!(answering(&tree), []);
}

/// mlx5: the kernel keeps its stack on the card, and the switch does not change that.
#[test]
fn ipv6_of_a_card_that_the_kernel_shares_is_found_always() {
    let mut tree = Tree::healthy();
    tree.connectx();
    tree.edit(", mac: \"02:00:00:00:01:01\"", "");
    tree.file("proc/sys/net/ipv6/conf/eth7/disable_ipv6", "0\n");
    let [(_, mend)] = &answering(&tree)[..] else {
        panic!("{}", tree.diagnosis());
    };
    let command = "sysctl -w net/ipv6/conf/eth7/disable_ipv6=1".to_owned();
    assert_eq!(*mend, Mend::Now(command));
}

#[test]
fn without_a_configuration_memory_and_clock_are_looked_at() {
    let tree = Tree::healthy();
    tree.hugepages("sys/kernel/mm/hugepages", 0);
    tree.file(
        "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages",
        "0\n",
    );
    tree.remove("sys/bus");
    let diagnosis = examine(&Host::tree(tree.dir.path()), None, &[]);
    let found: Vec<Check> = diagnosis.findings.iter().map(|one| one.check).collect();
    assert_eq!(found, [Check::HugepagesFew]);
    assert!(diagnosis.to_string().contains("npcc-switch doctor FILE"));
}

#[test]
fn hugepages_that_the_configuration_does_not_want_are_not_missed() {
    let mut tree = Tree::healthy();
    tree.hugepages("sys/kernel/mm/hugepages", 0);
    tree.edit("hugepages: on", "hugepages: off");
    assert_eq!(tree.diagnosis().findings, []);
    tree.edit("hugepages: off", "hugepages: auto");
    assert_eq!(tree.diagnosis().findings[0].severity, Severity::Warning);
}

#[test]
fn the_manual_explains_every_finding_and_no_other() {
    let manual = include_str!("../../docs/doctor.md");
    let rows = manual
        .lines()
        .skip_while(|line| !line.starts_with("| finding "));
    let rows = rows.skip(2).take_while(|line| line.starts_with('|'));
    let listed: BTreeSet<&str> = rows.filter_map(|row| row.split('`').nth(1)).collect();
    let all: BTreeSet<&str> = Check::ALL.iter().map(|check| check.name()).collect();
    assert_eq!(listed, all);
}
