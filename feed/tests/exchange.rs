//! Two feeds and two nats-servers: ends are exchanged, and any server, feed or credential may fail.
//!
//! Each round holds within [`LONG`], on a loaded machine too. The 2 s of docs/fleet.md are a law of `feed/src/sync`, whose tests have a clock of
//! their own; here the times are printed, and docs/measurements.md has them.

use std::time::Duration;

use crate::common::nats::addresses;
use crate::common::{Edge, Nats, end, is_exchanged, pair};
use nix::sys::signal::Signal::{SIGCONT, SIGSTOP};
use npcc_testkit::relay::Relay;
use npcc_testkit::wait::{LONG, until};

fn exchanged(pair: &[Edge; 2]) -> Duration {
    until("the exchange", LONG, || is_exchanged(pair))
}

/// Time between two of the five changes of an outage: a second in all, or `NPCC_SECONDS`.
fn pause() -> Duration {
    let seconds = std::env::var("NPCC_SECONDS").map_or(1, |text| text.parse().unwrap());
    Duration::from_secs(seconds) / 5
}

#[test]
fn ends_come_change_and_go_and_lost_rows_are_taken_from_a_snapshot() {
    let folder = tempfile::tempdir().unwrap();
    let servers = Nats::pair(folder.path(), |text| text);
    let pair = pair(folder.path(), &addresses(&servers));
    pair[0].switch.sees((0..5000).map(|number| end(number, 1)));
    pair[1]
        .switch
        .sees((9000..9100).map(|number| end(number, 1)));
    exchanged(&pair);
    pair[0].switch.sees((0..100).map(|number| end(number, 2)));
    pair[0]
        .switch
        .drops((200..300).map(|number| end(number, 1).key()));
    exchanged(&pair);
    pair[0]
        .switch
        .loses((6000..6100).map(|number| end(number, 1)));
    exchanged(&pair);
    let state = pair[0].state();
    assert_eq!(state["feed"]["ends"], 5000, "{state}");
    assert!(state["feed"]["snapshots"].as_u64() >= Some(2), "{state}");
    assert_eq!(state["feed"]["peers"][0]["ends"], 100, "{state}");
    assert_eq!(
        state["feed"]["suggested"]["peers"]["edge-2"]["accepted"], 100,
        "{state}"
    );
    assert_eq!(state["switch"]["worst_queue"]["delay_us"], 10.0, "{state}");
}

/// Routes that are active and standby: a box takes no ends of its peer until the routes lead to it, when the peer may be dead.
#[test]
fn ends_that_the_switch_refused_are_suggested_again_although_the_peer_is_dead() {
    let folder = tempfile::tempdir().unwrap();
    let servers = Nats::pair(folder.path(), |text| text);
    let [mut active, standby] = pair(folder.path(), &addresses(&servers));
    standby.switch.refuses(true);
    active.switch.sees((0..3000).map(|number| end(number, 1)));
    let refused = |state: &serde_json::Value| {
        state["feed"]["suggested"]["peers"]["edge-1"]["refused"]["not-behind-port"].as_u64()
    };
    until("all refused", LONG, || {
        refused(&standby.state()) >= Some(3000)
    });
    active.feed.kill();
    assert!(standby.switch.suggested("edge-1").is_empty());
    standby.switch.refuses(false);
    let given = || standby.switch.suggested("edge-1") == active.switch.table();
    println!("taken after {:?}", until("the ends", LONG, given));
}

/// The normal case: either server may die, one after the other, while ends change.
#[test]
fn one_of_two_servers_carries_the_exchange() {
    let folder = tempfile::tempdir().unwrap();
    let mut servers = Nats::pair(folder.path(), |text| text);
    let pair = pair(folder.path(), &addresses(&servers));
    pair[0].switch.sees((0..1000).map(|number| end(number, 1)));
    exchanged(&pair);
    let mut times = Vec::new();
    let sees = |version| {
        pair[0]
            .switch
            .sees((0..1000).map(|number| end(number, version)));
    };
    for round in 0..4u64 {
        let at = usize::from(round % 2 == 1);
        servers[at].kill();
        sees(2 * round + 2);
        times.push(exchanged(&pair));
        servers[at].run();
        sees(2 * round + 3);
        exchanged(&pair);
    }
    println!("with one of two servers killed, exchanged after {times:?}");
    for edge in &pair {
        let state = edge.state();
        let lost = state["feed"]["bus"]["disconnected"].as_u64();
        assert!(lost >= Some(2), "{state}");
    }
}

#[test]
fn after_both_servers_were_gone_copies_become_equal() {
    let folder = tempfile::tempdir().unwrap();
    let mut servers = Nats::pair(folder.path(), |text| text);
    let mut pair = pair(folder.path(), &addresses(&servers));
    pair[0].switch.sees((0..5000).map(|number| end(number, 1)));
    exchanged(&pair);
    let mut times = Vec::new();
    for round in 0..3 {
        servers.iter_mut().for_each(Nats::kill);
        for change in 0..5u64 {
            pair[0]
                .switch
                .sees((0..1000).map(|number| end(number + 500 * round, change + 10)));
            pair[1]
                .switch
                .sees((0..50).map(|number| end(number, change + u64::from(round))));
            // The stimulus: changes over a while.
            std::thread::sleep(pause());
        }
        assert!(!is_exchanged(&pair));
        servers.iter_mut().for_each(Nats::run);
        times.push(exchanged(&pair));
    }
    println!("with both servers back, exchanged after {times:?}");
    assert!(pair.iter_mut().all(|edge| edge.feed.is_running()));
    let state = pair[0].state();
    assert!(
        state["feed"]["bus"]["disconnected"].as_u64() >= Some(3),
        "{state}"
    );
}

/// Each box reaches its own server only, and the servers do not reach each other for a while.
#[test]
fn after_a_partition_of_the_pair_copies_become_equal() {
    let folder = tempfile::tempdir().unwrap();
    let (servers, relays) = Nats::pair_with_relays(folder.path());
    let pair = [1, 2].map(|number| {
        let own = [servers[number - 1].address()];
        Edge::start(folder.path(), number, &own, &format!("change-me-{number}"))
    });
    pair[0].switch.sees((0..1000).map(|number| end(number, 1)));
    exchanged(&pair);
    let mut times = Vec::new();
    for round in 0..3u32 {
        relays.iter().for_each(Relay::cut);
        for change in 0..5u64 {
            let version = u64::from(round) * 5 + change + 2;
            pair[0]
                .switch
                .sees((0..500).map(|number| end(number, version)));
            pair[1]
                .switch
                .sees((0..50).map(|number| end(number, version)));
            pair[0].switch.drops([end(500 + round, 1).key()]);
            // The stimulus: changes over a while.
            std::thread::sleep(pause());
        }
        assert!(!is_exchanged(&pair));
        relays.iter().for_each(Relay::heal);
        // Servers try their route again every second.
        let connected = || relays.iter().filter_map(Relay::connected).min();
        until("the route", LONG, || connected().is_some());
        exchanged(&pair);
        times.push(connected().unwrap().elapsed());
    }
    println!("after a partition of the pair, exchanged {times:?} after the route was back");
}

/// A server that hangs: pings find out, and the other one is taken.
#[test]
fn a_server_that_hangs_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let servers = Nats::pair(folder.path(), |text| text);
    let pair = pair(folder.path(), &addresses(&servers));
    pair[0].switch.sees((0..1000).map(|number| end(number, 1)));
    exchanged(&pair);
    let stop = |signal| {
        servers
            .iter()
            .for_each(|nats| nats.process.as_ref().unwrap().signal(signal))
    };
    stop(SIGSTOP);
    pair[0].switch.sees((0..1000).map(|number| end(number, 2)));
    // The stimulus: longer than two pings, so that both feeds find out.
    std::thread::sleep(Duration::from_secs(2));
    assert!(!is_exchanged(&pair));
    stop(SIGCONT);
    println!(
        "after both servers hung, exchanged after {:?}",
        exchanged(&pair)
    );
    // One of two hangs: nobody waits for it.
    servers[0].process.as_ref().unwrap().signal(SIGSTOP);
    pair[0].switch.sees((0..1000).map(|number| end(number, 3)));
    println!(
        "with one server hanging, exchanged after {:?}",
        exchanged(&pair)
    );
    servers[0].process.as_ref().unwrap().signal(SIGCONT);
}

/// A feed that does not read is cut off by the server; what it missed is counted and made up for.
#[test]
fn a_slow_feed_loses_rows_and_makes_up_for_them() {
    let folder = tempfile::tempdir().unwrap();
    let servers = Nats::pair(folder.path(), |text| {
        text.replace("max_pending: 16MB", "max_pending: 1MB")
    });
    let pair = pair(folder.path(), &addresses(&servers));
    pair[0]
        .switch
        .sees((0..10_000).map(|number| end(number, 1)));
    exchanged(&pair);
    pair[1].feed.signal(SIGSTOP);
    for version in 2..22 {
        pair[0]
            .switch
            .sees((0..10_000).map(|number| end(number, version)));
        // The stimulus: changes over a while.
        std::thread::sleep(Duration::from_millis(200));
    }
    let before = pair[0].feed.resident();
    pair[1].feed.signal(SIGCONT);
    exchanged(&pair);
    let state = pair[1].state();
    assert!(
        state["feed"]["bus"]["disconnected"].as_u64() >= Some(1),
        "{state}"
    );
    assert!(
        state["feed"]["peers"][0]["missing"].as_u64() > Some(0),
        "{state}"
    );
    assert!(before < 200_000, "{before} KiB");
}

/// Without the bus, memory stays as it is however much the switch sees; nor does the switch's reader wait.
#[test]
fn without_a_bus_memory_is_bounded_and_the_switch_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let mut servers = Nats::pair(folder.path(), |text| text);
    let mut pair = pair(folder.path(), &addresses(&servers));
    pair[0]
        .switch
        .sees((0..20_000).map(|number| end(number, 1)));
    exchanged(&pair);
    servers.iter_mut().for_each(Nats::kill);
    let churn = |rounds: std::ops::Range<u32>| {
        for round in rounds {
            let numbers = || (0..20_000).map(move |number| number + 50_000 * round);
            pair[0].switch.sees(numbers().map(|number| end(number, 1)));
            pair[0]
                .switch
                .drops(numbers().map(|number| end(number, 1).key()));
            // The stimulus: changes over a while.
            std::thread::sleep(Duration::from_millis(200));
        }
    };
    churn(1..10);
    let before = pair[0].feed.resident();
    churn(10..30);
    let after = pair[0].feed.resident();
    println!("{before} KiB after 180,000 ends that came and went, {after} KiB after 580,000");
    assert!(
        after < before + before / 2 && after < 250_000,
        "{before} then {after} KiB"
    );
    assert!(pair[0].feed.is_running());
    servers.iter_mut().for_each(Nats::run);
    exchanged(&pair);
}

/// A wrong password: the feed goes on trying, its switch is read, and once the server knows the password it takes part.
#[test]
fn wrong_credentials_are_waited_out() {
    let folder = tempfile::tempdir().unwrap();
    let wrong = |text: String| text.replace("change-me-2", "another");
    let servers = Nats::pair(folder.path(), wrong);
    let mut pair = pair(folder.path(), &addresses(&servers));
    pair[0].switch.sees((0..100).map(|number| end(number, 1)));
    pair[1].switch.sees((0..100).map(|number| end(number, 1)));
    until("the ends of its own switch", LONG, || {
        pair[0].state()["feed"]["ends"] == 100
    });
    // The stimulus: time for several attempts of the other feed.
    std::thread::sleep(Duration::from_secs(1));
    assert!(pair.iter_mut().all(|edge| edge.feed.is_running()));
    assert!(pair[1].switch.suggested("edge-1").is_empty());
    let state = pair[0].state();
    assert!(state["feed"]["peers"][0]["heard_ms"].is_null(), "{state}");
    // The first server goes on refusing.
    let path = folder.path().join("nats-2.conf");
    let text = std::fs::read_to_string(&path).unwrap();
    crate::common::write(&path, &text.replace("another", "change-me-2"));
    let second = servers[1].process.as_ref().unwrap();
    second.signal(nix::sys::signal::Signal::SIGHUP);
    exchanged(&pair);
}

/// A feed that restarts while its switch runs on: the peer's switch keeps its ends.
#[test]
fn a_feed_may_restart() {
    let folder = tempfile::tempdir().unwrap();
    let servers = Nats::pair(folder.path(), |text| text);
    let addresses = addresses(&servers);
    let [one, other] = pair(folder.path(), &addresses);
    one.switch.sees((0..2000).map(|number| end(number, 1)));
    let mut pair = [one, other];
    exchanged(&pair);
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_npcc-feed"));
    command.args(["run", "-c", pair[0].settings.to_str().unwrap()]);
    pair[0].feed = crate::common::Process(command.spawn().unwrap());
    assert_eq!(pair[1].switch.suggested("edge-1").len(), 2000);
    pair[0].switch.sees((0..10).map(|number| end(number, 2)));
    exchanged(&pair);
}
