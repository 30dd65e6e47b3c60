//! The field-test script against two servers and a switch that are emulated by scripts and files: what it would run, what it changes and
//! restores, and that its verdict follows from the figures.

use npcc_testkit::skip::skipped;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output};

use crate::common::{Lab, root};
use serde_json::Value;

/// Stand-in for `ssh`: runs the command locally, with the server's name in `SERVER`.
const SSH: &str = "#!/bin/sh
while [ \"${1#-}\" != \"$1\" ]; do shift 2; done
export SERVER=$1; shift
exec sh -c \"$*\"
";

/// Stand-in for the sender's end of a transfer: with the action `send` the card counts the switch's CNPs, as far as it receives them.
const BANDWIDTH: &str = "#!/bin/sh
for last; do :; done
case $last in 10.*) ;; *) exit 0 ;; esac
[ ! -e $LAB/perftest-fails ] || { echo no route to the receiver; exit 1; }
add() { [ ! -e $1 ] || echo $(($(cat $1) + $2)) > $1; }
action=$(cat $LAB/action)
counters=$LAB/$SERVER/sys/class/infiniband/mlx5_0/ports/1/hw_counters
. $LAB/card
add $LAB/would 800
gbits=9.20
if [ $action = send ]; then
    add $LAB/sent 1000
    for name in rp_cnp_handled cnpHandled rx_cnp_pkts; do add $counters/$name $handled; done
    add $counters/rp_cnp_ignored $((1000 - handled))
    add $LAB/right/sys/class/infiniband/mlx5_0/ports/1/hw_counters/np_cnp_sent $theirs
    add $LAB/worked $worked
    add $LAB/vain $((100 - worked))
    [ $worked -lt 50 ] || { echo 150000 > $LAB/peak; gbits=9.10; }
fi
echo ' #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]'
echo \" 65536      113400           0.00               $gbits               0.018\"
";

const LATENCY: &str = "#!/bin/sh
echo ' #bytes        #iterations       t_avg[usec]    tps average'
echo ' 2             29410          48.31           20700'
";

/// Stand-in for `sleep`: nothing here needs a second to start.
const SLEEP: &str = "#!/bin/sh
exec /bin/sleep 0.02
";

/// Stand-in for the switch's command line, as far as the script uses it.
const SWITCH: &str = "#!/bin/sh
echo \"$*\" >> $LAB/asked
case \"$1 $2\" in
    'doctor '*) echo 'core-tick note'; exit 1 ;;
    '--version '*) echo 'npcc-switch 0.0.0' ;;
    'set npcc.action') echo $3 > $LAB/action ;;
    'clear watermarks') echo 900000 > $LAB/peak ;;
    'show npcc') cat <<END
{
  \"action\": \"$(cat $LAB/action)\",
  \"queues\": [
    { },
    {
      \"action\": \"send\",
      \"peak\": $(cat $LAB/peak),
    }
  ]
}
END
    ;;
    'show hosts') cat <<END
[
  {
    \"address\": \"10.0.1.2\",
    \"cnps_sent\": $(cat $LAB/sent),
    \"would_send\": $(cat $LAB/would),
    \"responsiveness\": \"unknown\",
    \"passed\": $(cat $LAB/worked),
    \"failed\": $(cat $LAB/vain),
    \"unmeasured\": {}
  }
]
END
    ;;
    'show flows') cat <<END
[
  {
    \"src\": \"10.0.2.3\",
    \"dst\": \"10.0.1.2\",
    \"sender_qp\": 9,
  },
  {
    \"src\": \"10.0.1.2\",
    \"dst\": \"10.0.2.3\",
    \"dest_qp\": 17,
    \"sender_qp\": null,
  },
  {
    \"src\": \"10.0.1.2\",
    \"dst\": \"10.0.2.3\",
    \"dest_qp\": 18,
    \"sender_qp\": 24,
  }
]
END
    ;;
    'cnp send')
        . $LAB/card
        for name in rp_cnp_handled cnpHandled rx_cnp_pkts; do
            counter=$LAB/left/sys/class/infiniband/mlx5_0/ports/1/hw_counters/$name
            [ ! -e $counter ] || echo $(($(cat $counter) + handled / 10)) > $counter
        done
    ;;
    'show ports') printf '[\\n  {\\n    \"lossless_lost\": 0,\\n    \"queues\": [\\n      {\\n        \"ecn_marked\": 7\\n      }\\n    ]\\n  }\\n]\\n' ;;
    *) exit 2 ;;
esac
";

/// Creates a field of two servers. The card handles `handled` of 1,000 CNPs, and slows down in `worked` of 100 measurements.
fn field(counters: &[&str], handled: u32, worked: u32) -> Lab {
    let lab = Lab::new();
    let write = |path: &str, text: &str| {
        let path = lab.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        let mode = if text.starts_with("#!") { 0o755 } else { 0o644 };
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    };
    write("bin/ssh", SSH);
    write("bin/ib_write_bw", BANDWIDTH);
    write("bin/ib_send_lat", LATENCY);
    write("bin/npcc-switch", SWITCH);
    write("bin/sleep", SLEEP);
    write("bin/ethtool", "#!/bin/sh\necho '     rx_prio3_pause: 5'\n");
    write("bin/mlnx_qos", "#!/bin/sh\nexit 1\n");
    for server in ["left", "right"] {
        let device = format!("{server}/sys/class/infiniband/mlx5_0");
        write(&format!("{device}/fw_ver"), "28.39.1002\n");
        write(
            &format!("{device}/device/net/eth2/ecn/roce_rp/enable/3"),
            "1\n",
        );
        write(
            &format!("{device}/ports/1/hw_counters/out_of_sequence"),
            "3\n",
        );
        for counter in counters {
            write(
                &format!("{device}/ports/1/hw_counters/{counter}"),
                "1234567\n",
            );
        }
    }
    write(
        "card",
        &format!("handled={handled}\nworked={worked}\ntheirs=0\n"),
    );
    for (name, text) in [
        ("action", "off"),
        ("sent", "0"),
        ("would", "0"),
        ("worked", "0"),
        ("vain", "0"),
        ("peak", "0"),
    ] {
        write(name, text);
    }
    write("switch.yaml", "npcc: { hosts: { allow: [10.0.1.2/32] } }\n");
    lab
}

fn field_test(lab: &Lab, more: &[&str]) -> Output {
    let path = format!("{}:/usr/bin:/bin", lab.path("bin").display());
    let root_of_server = format!("{}/$SERVER", lab.dir.path().display());
    let mut command = Command::new(root().join("scripts/field-test"));
    command
        .current_dir(lab.dir.path())
        .env("PATH", path)
        .env("LAB", lab.dir.path())
        .env_remove("NPCC_SWITCH")
        .args([
            "left",
            "right",
            "--sender-address",
            "10.0.1.2",
            "--receiver-address",
            "10.0.2.3",
        ])
        .args([
            "--seconds",
            "5",
            "--config",
            "switch.yaml",
            "--socket",
            "s.sock",
            "--output",
            "report",
        ])
        .args(["--host-root", &root_of_server])
        .args(more);
    command.output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Runs the field test, and reads its report.
fn report(lab: &Lab) -> Value {
    let output = field_test(lab, &[]);
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(lab_text(lab, "action").trim(), "off", "it is not as before");
    let text = lab_text(lab, "report.json");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn lab_text(lab: &Lab, name: &str) -> String {
    fs::read_to_string(lab.path(name)).unwrap()
}

const MLX5: [&str; 4] = [
    "rp_cnp_handled",
    "rp_cnp_ignored",
    "np_cnp_sent",
    "np_ecn_marked_roce_packets",
];

#[test]
fn a_card_that_responds_one_that_is_deaf_and_one_that_hears_without_effect_have_their_verdicts() {
    let answers = report(&field(&MLX5, 990, 95));
    assert_eq!(answers["verdict"], "answers", "{answers:#}");
    assert_eq!(answers["result.cnps_sent"], 1000);
    assert_eq!(answers["result.cnps_handled"], 990);
    assert_eq!(answers["result.handled_percent"], 99);
    assert_eq!(answers["ordered.queue_pair"], 24);
    assert_eq!(answers["result.ordered_cnps"], 100);
    assert_eq!(answers["result.ordered_handled"], 99);
    assert_eq!(answers["result.observe.peak_bytes"], 900_000);
    assert_eq!(answers["result.send.peak_bytes"], 150_000);
    assert_eq!(answers["perftest.send.gbits"], "9.10");
    assert_eq!(answers["perftest.observe.latency_us"], "48.31");
    assert_eq!(answers["sender.firmware"], "28.39.1002");
    assert_eq!(answers["sender.reaction_point_enabled"], 1);
    assert_eq!(answers["receiver.before-send.rx_prio3_pause"], 5);

    let lab = field(&MLX5, 0, 2);
    let deaf = report(&lab);
    assert_eq!(deaf["verdict"], "deaf", "{deaf:#}");
    assert_eq!(deaf["result.cnps_ignored"], 1000);
    assert_eq!(deaf["result.ordered_handled"], 0);
    let text = lab_text(&lab, "report.txt");
    assert!(text.contains("verdict: deaf\n"), "{text}");
    assert!(text.contains(
        "the switch sent 1000 CNPs and the receiver 0; the card handled 0 (ignored: 1000)"
    ));

    // The CNPs it handled were the receiver's.
    let lab = field(&MLX5, 900, 2);
    fs::write(lab.path("card"), "handled=900\nworked=2\ntheirs=900\n").unwrap();
    let deaf = report(&lab);
    assert_eq!(deaf["verdict"], "deaf", "{deaf:#}");
    assert_eq!(deaf["result.send.receiver_cnps"], 900);

    let in_vain = report(&field(&MLX5, 980, 3));
    assert_eq!(in_vain["verdict"], "hears-without-effect", "{in_vain:#}");
}

#[test]
fn counters_of_every_driver_are_read_and_a_card_without_any_is_judged_by_its_rate() {
    let irdma = report(&field(&["cnpHandled", "cnpIgnored", "cnpSent"], 990, 95));
    assert_eq!(
        (&irdma["verdict"], &irdma["result.cnps_handled"]),
        (&"answers".into(), &990.into())
    );
    let bnxt = report(&field(&["rx_cnp_pkts", "tx_cnp_pkts"], 0, 0));
    assert_eq!(bnxt["verdict"], "deaf");
    let soft = report(&field(&[], 0, 0));
    assert_eq!(soft["verdict"], "unknown", "{soft:#}");
    assert!(soft["why"].as_str().unwrap().contains("soft-RoCE"));
    let uncounted = report(&field(&[], 0, 90));
    assert_eq!(uncounted["verdict"], "answers-uncounted");
}

#[test]
fn a_dry_run_prints_every_command_and_runs_none() {
    let lab = field(&MLX5, 990, 95);
    let output = field_test(&lab, &["--dry-run"]);
    let said = said(&output);
    assert!(output.status.success(), "{said}");
    assert!(!lab.path("asked").exists() && !lab.path("report.txt").exists());
    let at = |text: &str| {
        said.find(text)
            .unwrap_or_else(|| panic!("no {text}: {said}"))
    };
    let observe = at("+ npcc-switch set npcc.action observe --socket s.sock");
    let order = at(
        "+ npcc-switch cnp send --to 10.0.1.2 --from 10.0.2.3 --qp QUEUE-PAIR --count 100 --socket s.sock",
    );
    let send = at("+ npcc-switch set npcc.action send --socket s.sock");
    assert!(observe < order && order < send);
    assert!(at("+ npcc-switch doctor switch.yaml") < observe && observe < send);
    assert!(at("ACTION-AS-BEFORE") > send);
    for command in [
        "+ ssh right timeout 35 ib_write_bw",
        "+ ssh left timeout 35 ib_write_bw",
        "ib_send_lat",
        "hw_counters",
        "10.0.2.3",
    ] {
        at(command);
    }
}

#[test]
fn the_script_stops_before_it_changes_anything_and_restores_what_it_changed() {
    let lab = field(&MLX5, 990, 95);
    fs::write(
        lab.path("switch.yaml"),
        "npcc: { hosts: { allow: [10.0.1.0/24] } }\n",
    )
    .unwrap();
    let output = field_test(&lab, &[]);
    assert!(
        said(&output).contains("allow: [10.0.1.2/32]"),
        "{}",
        said(&output)
    );
    assert_eq!(output.status.code(), Some(1));
    assert!(!lab_text(&lab, "asked").contains("set npcc.action"));

    let lab = field(&MLX5, 990, 95);
    fs::write(lab.path("perftest-fails"), "").unwrap();
    let output = field_test(&lab, &[]);
    assert!(
        said(&output).contains("perftest failed in step observe"),
        "{}",
        said(&output)
    );
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(lab_text(&lab, "action").trim(), "off");

    let output = field_test(&lab, &["--sender-device", "mlx5_0;reboot"]);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    let output = field_test(&lab, &["--sender-device", "mlx5_9"]);
    assert!(
        said(&output).contains("left: there is no RDMA device mlx5_9"),
        "{}",
        said(&output)
    );
}

#[test]
fn shellcheck_finds_no_fault() {
    let checked = Command::new("shellcheck")
        .arg(root().join("scripts/field-test"))
        .output();
    let Ok(checked) = checked else {
        skipped("shellcheck", "shellcheck (apt-get install shellcheck)");
        return;
    };
    assert!(
        checked.status.success(),
        "{}",
        String::from_utf8_lossy(&checked.stdout)
    );
}
