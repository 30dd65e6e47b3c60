//! Commands of an operator: check, doctor, fleet, history and trial.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::common::nats::addresses;
use crate::common::{Edge, FakeSwitch, Nats, feed, has_row, pair, settings, text, write};
use npcc_testkit::wait::{LONG, until};
use serde_json::json;

fn doctor(settings: &std::path::Path) -> (bool, String) {
    let out = feed(&["doctor", "-c", settings.to_str().unwrap()]);
    assert!(out.stderr.is_empty(), "{}", text(&out.stderr));
    (out.status.success(), text(&out.stdout))
}

#[test]
fn doctor_finds_a_pair_as_the_package_ships_it_well() {
    let folder = tempfile::tempdir().unwrap();
    let servers = Nats::pair(folder.path(), |text| text);
    let pair = pair(folder.path(), &addresses(&servers));
    let mut said = String::new();
    until("a doctor without complaint", LONG, || {
        let (well, found) = doctor(&pair[0].settings);
        said = found;
        well
    });
    assert!(
        said.contains("[no-history]") && said.lines().count() == 2,
        "{said}"
    );
}

/// A switch that accepts connections and answers nothing, as a stopped process does.
#[test]
fn fleet_shows_a_switch_that_hangs_as_down() {
    let folder = tempfile::tempdir().unwrap();
    let servers = Nats::pair(folder.path(), |text| text);
    let edge = Edge::start(folder.path(), 1, &addresses(&servers), "change-me-1");
    let shows = |state: &str| has_row(&edge.settings, &format!("dc1 edge-1 {state}"));
    until("a state", LONG, || shows("up"));
    edge.switch.hangs();
    until("its end", LONG, || !shows("up"));
    // The row stays.
    for _ in 0..3 {
        assert!(shows("down"));
    }
}

#[test]
fn fleet_shows_the_boxes_of_all_sites_if_wanted() {
    let folder = tempfile::tempdir().unwrap();
    let two_sites = |text: String| {
        text.replace(
            "publish: [ \"npcc.dc1.edge-1.>\" ], subscribe: [ \"npcc.dc1.>\" ]",
            "publish: [ \"npcc.dc1.edge-1.>\" ], subscribe: [ \"npcc.dc1.>\", \"npcc.*.*.state\" ]",
        )
        .replace(
            "publish: [ \"npcc.dc1.edge-2.>\" ], subscribe: [ \"npcc.dc1.>\" ]",
            "publish: [ \"npcc.dc2.edge-2.>\" ], subscribe: [ \"npcc.dc2.>\" ]",
        )
    };
    let servers = Nats::pair(folder.path(), two_sites);
    let servers_at = addresses(&servers);
    let one = Edge::start(folder.path(), 1, &servers_at, "change-me-1");
    let _other = Edge::changed(folder.path(), 2, &servers_at, "change-me-2", |text| {
        text.replace("site: dc1", "site: dc2")
    });
    let fleet = |more: &[&str]| {
        let out = feed(&[&["fleet", "-c", one.settings.to_str().unwrap()], more].concat());
        assert!(out.status.success(), "{}", text(&out.stderr));
        text(&out.stdout)
    };
    until("both sites", LONG, || {
        let all = fleet(&["--all-sites"]);
        all.contains("dc1") && all.contains("dc2")
    });
    assert!(!fleet(&[]).contains("dc2"));
}

#[test]
fn doctor_compares_three_nodes() {
    let folder = tempfile::tempdir().unwrap();
    let servers = Nats::three(folder.path(), |text| text);
    let switch = FakeSwitch::start(&folder.path().join("switch.sock"));
    let examine = |servers: &[Nats]| {
        let servers = addresses(servers);
        let path = settings(folder.path(), 1, &servers, "change-me-1", &switch.socket);
        doctor(&path).1
    };
    let said = examine(&servers);
    assert!(
        said.contains("[peer-silent]") && said.lines().count() == 2,
        "{said}"
    );
    drop(servers);
    let mut number = 0;
    let servers = Nats::three(folder.path(), |text| {
        number += 1;
        match number {
            2 => text.replace("max_payload: 65536", "max_payload: 32768"),
            3 => {
                let (before, block) = text.split_once("jetstream {").unwrap();
                before.to_owned() + block.split_once("}\n").unwrap().1
            }
            _ => text,
        }
    });
    let said = examine(&servers);
    let [_, short, without] = addresses(&servers).try_into().unwrap();
    for (place, kind) in [(short, "[max-payload]"), (without, "[history-on-some]")] {
        let finding = said.lines().find(|line| line.ends_with(kind));
        let start = format!("warning: {place}: ");
        assert!(
            finding.is_some_and(|line| line.starts_with(&start)),
            "{said}"
        );
    }
    assert!(!said.contains("[no-history]"), "{said}");
}

#[test]
fn doctor_says_what_is_wrong_with_servers() {
    let folder = tempfile::tempdir().unwrap();
    let alone = |text: String| {
        // Anybody may publish anything, and the route leads nowhere.
        text.replace("publish: [ \"npcc.dc1.edge-1.>\" ]", "publish: [ \">\" ]")
            .replace("name: npcc", "name: other")
            .lines()
            .filter(|line| !line.contains("routes:"))
            .map(|line| line.to_owned() + "\n")
            .collect()
    };
    let mut servers = Nats::pair(folder.path(), alone);
    let switch = FakeSwitch::start(&folder.path().join("switch.sock"));
    let at = |password| {
        settings(
            folder.path(),
            1,
            &addresses(&servers),
            password,
            &switch.socket,
        )
    };
    let (well, said) = doctor(&at("change-me-1"));
    for expected in [
        "[no-route]",
        "[permissions-too-wide]",
        "[peer-silent]",
        "[no-history]",
    ] {
        assert!(said.contains(expected), "{expected} is not in\n{said}");
    }
    assert!(
        !well && !said.contains("[unreachable]") && !said.contains("[switch-silent]"),
        "{said}"
    );
    let (_, said) = doctor(&at("wrong"));
    assert_eq!(said.matches("[credentials]").count(), 2, "{said}");
    let settings = at("change-me-1");
    servers[1].kill();
    drop(switch);
    std::fs::remove_file(folder.path().join("switch.sock")).unwrap();
    let (_, said) = doctor(&settings);
    assert_eq!(said.matches("[unreachable]").count(), 1, "{said}");
    assert!(said.contains("[switch-silent]"), "{said}");
}

#[test]
fn doctor_says_what_a_box_may_not_do_and_whose_clock_is_off() {
    let folder = tempfile::tempdir().unwrap();
    let narrow = |text: String| {
        text.replace("publish: [ \"npcc.dc1.edge-1.>\" ], subscribe: [ \"npcc.dc1.>\" ]", "publish: [ \"npcc.dc1.edge-1.state\" ], subscribe: [ \"npcc.dc1.*.state\", \"npcc.dc1.edge-1.>\" ]")
    };
    let servers = Nats::pair(folder.path(), narrow);
    let switch = FakeSwitch::start(&folder.path().join("switch.sock"));
    let settings = settings(
        folder.path(),
        1,
        &addresses(&servers),
        "change-me-1",
        &switch.socket,
    );
    // The other box's state, with a clock that is a minute behind.
    let (address, password) = (addresses(&servers)[0].clone(), "change-me-2".to_owned());
    let ended = Arc::new(AtomicBool::new(false));
    let ends = Arc::clone(&ended);
    let late = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let options =
                async_nats::ConnectOptions::new().user_and_password("edge-2".to_owned(), password);
            let client = options.connect(address).await.unwrap();
            while !ends.load(Ordering::Relaxed) {
                let now = std::time::SystemTime::now()
                    .duration_since(std::time::UNIX_EPOCH)
                    .unwrap();
                let state =
                    json!({"v": 1, "at": u64::try_from(now.as_micros()).unwrap() - 60_000_000});
                client
                    .publish("npcc.dc1.edge-2.state", state.to_string().into())
                    .await
                    .unwrap();
                // The stimulus: a state now and then.
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        });
    });
    let (well, said) = doctor(&settings);
    ended.store(true, Ordering::Relaxed);
    late.join().unwrap();
    assert!(!well && said.contains("[permissions-too-narrow]"), "{said}");
    assert!(
        said.contains("may not publish npcc.dc1.edge-1.doctor"),
        "{said}"
    );
    assert!(
        said.contains("may not read npcc.dc1.edge-2.ends.>"),
        "{said}"
    );
    assert!(said.contains("[clock]") && said.contains("-60"), "{said}");
}

/// The settings that the package ships are as they should be, but for the password, which they name and do not have.
#[test]
fn the_shipped_settings_are_fine() {
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("secret");
    write(&secret, "change-me");
    let shipped = include_str!("../../packaging/feed/feed.yaml");
    let path = folder.path().join("feed.yaml");
    write(
        &path,
        &shipped.replace("/etc/npcc-switch/feed.password", secret.to_str().unwrap()),
    );
    let out = feed(&["check", "-c", path.to_str().unwrap()]);
    assert!(
        out.status.success() && out.stderr.is_empty(),
        "{}",
        text(&out.stderr)
    );
}

#[test]
fn check_points_at_mistakes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("feed.yaml");
    write(&path, "site: dc1\nbox: host\nbus: { servers: [] }\n");
    let out = feed(&["check", "-c", path.to_str().unwrap()]);
    assert_eq!(out.status.code(), Some(2));
    let said = text(&out.stderr);
    assert!(
        said.contains("feed.yaml:2:6: error: this name is reserved and cannot name a box"),
        "{said}"
    );
    assert!(
        said.contains("feed.yaml:3:17: error: no server is named"),
        "{said}"
    );
    let out = feed(&["check", "-c", "/nonexistent"]);
    assert_eq!(out.status.code(), Some(2));
}

/// A password that systemd hands over has a mode of its own, in a folder of the service's.
#[test]
fn a_password_may_be_handed_over_by_the_service_manager() {
    let folder = tempfile::tempdir().unwrap();
    let credentials = folder.path().join("credentials");
    std::fs::create_dir(&credentials).unwrap();
    let path = folder.path().join("agent.yaml");
    let shipped = include_str!("../../packaging/feed/agent.yaml");
    write(&path, shipped);
    let check = || {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_npcc-agent"));
        command.env("CREDENTIALS_DIRECTORY", &credentials);
        command.args(["check", "-c", path.to_str().unwrap()]);
        let out = command.output().unwrap();
        (out.status.success(), text(&out.stderr))
    };
    let (accepted, said) = check();
    assert!(
        !accepted && said.contains("cannot read /etc/npcc-switch/agent.password"),
        "{said}"
    );
    let password = credentials.join("agent.password");
    write(&password, "change-me");
    std::fs::set_permissions(
        &password,
        std::os::unix::fs::PermissionsExt::from_mode(0o440),
    )
    .unwrap();
    let (accepted, said) = check();
    assert!(accepted, "{said}");
    write(&password, "");
    let (accepted, said) = check();
    assert!(
        !accepted && said.contains("credentials/agent.password holds no text"),
        "{said}"
    );
}

#[test]
fn a_trial_shows_two_boxes_that_are_equal() {
    let folder = tempfile::tempdir().unwrap();
    let [one, other] = ["one", "other"].map(|name| FakeSwitch::start(&folder.path().join(name)));
    one.sees((0..50).map(|number| crate::common::end(number, 1)));
    let sockets = [&one, &other].map(|switch| switch.socket.to_str().unwrap().to_owned());
    let out = feed(&[
        "trial",
        "--first",
        &sockets[0],
        "--second",
        &sockets[1],
        "--tables",
        "2",
    ]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    let said = text(&out.stdout);
    assert!(
        said.contains("edge-2:equal") && said.contains("edge-1:equal"),
        "{said}"
    );
    assert_eq!(other.suggested("edge-1"), one.table());
    let folder = said
        .split_whitespace()
        .find(|word| word.contains("npcc-feed-trial"))
        .unwrap();
    assert!(!std::path::Path::new(folder).exists(), "{folder} is left");
    // Without options, the sockets are those of the switch's defaults.
    let out = feed(&["trial", "--watch", "--tables", "1"]);
    assert!(
        out.status.success() && text(&out.stdout).contains("edge-1"),
        "{}",
        text(&out.stderr)
    );
}
