//! `doctor` and the script that applies its advice, on trees of files that look like hosts; each finding has its test in
//! doctor/tests/findings.rs.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::common::{Lab, root, switch};

const CONFIG: &str = "version: 1
dpdk: { hugepages: off }
cores: { control: 0, workers: [1] }
ports: [ { name: wan0, device: \"net_af_packet0,iface=eth1\", mtu: 1500, speed: 10G, addresses: [10.0.12.1/24] } ]
qos: { profile: lossy }
";

/// Creates a host whose core 1 is slow, and whose core 0 is not isolated.
fn host() -> Lab {
    let lab = Lab::with(CONFIG);
    let file = |path: &str, text: &str| {
        let path = lab.path("host").join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    // Folder of the management socket.
    let sockets = lab.dir.path().to_str().unwrap().trim_start_matches('/');
    file(&format!("{sockets}/here"), "");
    file("sys/class/net/eth1/flags", "0x1003");
    file("sys/class/net/eth1/mtu", "1500");
    file("sys/devices/system/cpu/isolated", "1");
    file("sys/devices/system/cpu/nohz_full", "0-1");
    file(
        "sys/devices/system/cpu/cpu1/cpufreq/scaling_governor",
        "powersave",
    );
    lab
}

fn doctor(lab: &Lab, more: &[&str]) -> Output {
    let args = ["doctor", "switch.yaml", "--host", "host"];
    lab.command(&[&args, more].concat()).output().unwrap()
}

#[test]
fn doctor_prints_for_people_scripts_and_shells_and_its_exit_code_is_the_verdict() {
    let lab = host();
    let json = doctor(&lab, &["--json"]);
    assert_eq!(json.status.code(), Some(1));
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(
        (&json["errors"], &json["warnings"]),
        (&0.into(), &2.into()),
        "{json}"
    );
    let governor = &json["findings"][1];
    assert_eq!(governor["check"], "governor");
    assert_eq!(governor["where"], "core 1");
    assert_eq!(governor["mend"]["when"], "now");
    let text = String::from_utf8(doctor(&lab, &[]).stdout).unwrap();
    assert!(text.ends_with("0 errors, 2 warnings, 0 notes\n"), "{text}");
    let commands = String::from_utf8(doctor(&lab, &["--commands"]).stdout).unwrap();
    let mut lines = commands.lines();
    assert!(
        lines
            .next()
            .unwrap()
            .starts_with("# then restart the host: ")
    );
    assert!(
        lines
            .next()
            .unwrap()
            .starts_with("echo performance > /sys/")
    );

    let cpu = lab.path("host/sys/devices/system/cpu");
    std::fs::write(cpu.join("isolated"), "0-1").unwrap();
    std::fs::write(cpu.join("cpu1/cpufreq/scaling_governor"), "performance").unwrap();
    assert_eq!(doctor(&lab, &[]).status.code(), Some(0));
    lab.config("version: 1\nports: { dc0: [ }\n");
    assert_eq!(doctor(&lab, &[]).status.code(), Some(2));
}

/// A card is known by its PCI numbers: what its driver needs is looked for before anybody starts the switch.
#[test]
fn doctor_finds_what_a_card_lacks_by_its_numbers() {
    let lab = host();
    lab.config(&CONFIG.replace("net_af_packet0,iface=eth1", "0000:3b:00.0"));
    let file = |path: &str, text: &str| {
        let path = lab.path("host").join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let device = "sys/bus/pci/devices/0000:3b:00.0";
    file(&format!("{device}/vendor"), "0x8086\n");
    file(&format!("{device}/device"), "0x159b\n");
    let plugin = npcc_dpdk::Plugin::of_card(0x8086, 0x159b).unwrap();
    let drivers = plugin.folder.strip_prefix("/").unwrap().to_str().unwrap();
    file(&format!("{drivers}/here"), "");
    let said = String::from_utf8(doctor(&lab, &["--commands"]).stdout).unwrap();
    assert!(
        said.contains(&format!("apt-get install {}\n", plugin.package)),
        "{said}"
    );
    assert!(said.contains("apt-get install firmware-"), "{said}");
    assert!(said.contains("vfio-pci"), "{said}");
}

/// Guards `doctor` on the real machine: whatever its state, the findings are well-formed.
#[test]
fn doctor_examines_the_machine_it_runs_on() {
    let lab = Lab::with(CONFIG);
    let output = lab
        .command(&["doctor", "switch.yaml", "--json"])
        .output()
        .unwrap();
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let checks = json["findings"].as_array().unwrap().iter();
    let checks: Vec<&str> = checks.map(|one| one["check"].as_str().unwrap()).collect();
    // No machine of ours has it.
    assert!(checks.contains(&"interface-missing"), "{checks:?}");
    assert_eq!(output.status.code(), Some(1));
    let alone = switch().arg("doctor").output().unwrap();
    assert!(
        String::from_utf8(alone.stdout)
            .unwrap()
            .contains("doctor FILE")
    );
}

fn host_setup(lab: &Lab, args: &[&str]) -> Output {
    let mut command = Command::new(root().join("scripts/host-setup"));
    command.env("NPCC_SWITCH", env!("CARGO_BIN_EXE_npcc-switch"));
    command
        .current_dir(lab.dir.path())
        .args(args)
        .output()
        .unwrap()
}

/// Returns every file under a folder with its text.
fn files(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(files(&path));
        } else {
            let text = std::fs::read_to_string(&path).unwrap();
            all.push((path, text));
        }
    }
    all.sort();
    all
}

#[test]
fn host_setup_carries_out_what_doctor_says_and_a_dry_run_changes_nothing() {
    let lab = host();
    // The only step to apply is in this tree, so that it can be checked and the machine stays as it is.
    let run = lab.path("sockets");
    let mut text = CONFIG.to_owned();
    text += &format!("telemetry: {{ socket: {}/switch.sock }}\n", run.display());
    lab.config(&text);
    let cpu = lab.path("host/sys/devices/system/cpu");
    std::fs::remove_dir_all(cpu).unwrap();

    let before = files(lab.dir.path());
    let args = ["--dry-run", "switch.yaml", "--host", "host"];
    let dry = host_setup(&lab, &args);
    crate::common::assert_success(&dry);
    let said = String::from_utf8(dry.stdout).unwrap();
    assert!(
        said.contains(&format!("+ mkdir -p {}\n", run.display())),
        "{said}"
    );
    assert_eq!(files(lab.dir.path()), before);
    assert!(!run.exists());

    let done = host_setup(&lab, &args[1..]);
    crate::common::assert_success(&done);
    assert!(run.is_dir());
    let wrong = host_setup(&lab, &[]);
    assert_eq!(wrong.status.code(), Some(2));
}

/// The host has a ConnectX: the examples for cards start, a lossless profile does not, and each remedy that `check` names is accepted.
#[test]
fn check_refuses_a_lossless_port_on_a_card_without_pause_and_names_what_it_accepts() {
    let example =
        |name: &str| std::fs::read_to_string(root().join("config/examples").join(name)).unwrap();
    let lossless = example("connectx.yaml").replace("roce-semi-lossless", "roce-lossless");
    let off = |text: &str, port: &str| {
        let name = format!("name: {port} ");
        text.replace(&name, &format!("pfc: off\n    {name}"))
    };
    let lab = Lab::with(&lossless);
    for function in 0..2 {
        let folder = lab.path(&format!("host/sys/bus/pci/devices/0000:3b:00.{function}"));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("vendor"), "0x15b3\n").unwrap();
        std::fs::write(folder.join("device"), "0x1021\n").unwrap();
    }
    let check = |text: &str| {
        std::fs::write(lab.path("switch.yaml"), text).unwrap();
        let args = ["check", "-c", "switch.yaml", "--host", "host"];
        let output = lab.command(&args).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        (output.status.code(), said)
    };
    let (code, said) = check(&lossless);
    assert_eq!(code, Some(2), "{said}");
    let at = |word: &str| said.find(word).unwrap_or_else(|| panic!("{word}: {said}"));
    assert!(at("port dc0: a priority is lossless") < at("port wan0: a priority"));
    assert!(at("`qos.profile: roce-semi-lossless`") < at("`pfc: off`"));
    let (code, said) = check(&off(&lossless, "dc0"));
    assert!(code == Some(2) && !said.contains("port dc0:"), "{said}");
    for accepted in [
        example("connectx.yaml"),
        off(&off(&lossless, "dc0"), "wan0"),
        example("e810.yaml"),
        lossless
            .replace("name: dc0 ", "pfc: send\n    name: dc0 ")
            .replace("name: wan0 ", "pfc: honour\n    name: wan0 "),
    ] {
        let (code, said) = check(&accepted);
        assert_eq!(code, Some(0), "{said}");
    }
}

/// Two tables know cards by their numbers: that of pause, and that of the drivers' packages.
#[test]
fn both_tables_of_cards_have_the_same_driver_for_a_number() {
    let mut compared = 0;
    for card in npcc_config::cards::rows() {
        for device in card.devices.unwrap_or_default() {
            let plugin = npcc_dpdk::Plugin::of_card(card.vendor, *device);
            let driver = plugin.map(|plugin| plugin.driver).unwrap_or_default();
            let is_vf = card.drivers.contains(&"net_iavf");
            assert!(
                card.drivers.contains(&driver.as_str()) || (is_vf && !driver.is_empty()),
                "{}: {:04x}:{device:04x} has {driver:?}",
                card.name,
                card.vendor
            );
            compared += 1;
        }
    }
    assert!(compared > 60, "{compared}");
}
