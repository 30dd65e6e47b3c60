//! The web page in a real browser: it shows a live depth, contacts only the switch, and says so when the switch is dead.
//!
//! Without Debian's `chromium` the tests say so and pass; scripts/test installs it.

use npcc_testkit::skip::skipped;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use crate::common::alone;
use crate::common::http::{Watched, get, get_by};

/// Returns the document after some seconds of the page's time; none without a browser.
fn dom(address: SocketAddr) -> Option<String> {
    let profile = tempfile::tempdir().unwrap();
    let output = Command::new("chromium")
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
        ])
        .args(["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .args(["--virtual-time-budget=6000", "--dump-dom"])
        .arg(format!("http://{address}/"))
        .stdin(Stdio::null())
        .output();
    let Ok(output) = output else {
        skipped("page", "chromium (apt-get install chromium)");
        return None;
    };
    crate::common::assert_success(&output);
    Some(String::from_utf8(output.stdout).unwrap())
}

/// Returns the text after `mark`, up to the next `<` or quote.
fn after<'a>(dom: &'a str, mark: &str) -> &'a str {
    let (_, rest) = dom
        .split_once(mark)
        .unwrap_or_else(|| panic!("no {mark} in\n{dom}"));
    rest.split(['<', '"']).next().unwrap()
}

/// Starts a proxy between browser and switch that records the requests. Once `most` snapshots were passed on, it acts as if the switch
/// were dead.
fn between(switch: SocketAddr, most: usize) -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let requested = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&requested);
    // The thread ends with the test's process.
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (stream, noted) = (stream.unwrap(), Arc::clone(&noted));
            std::thread::spawn(move || hand_on(stream, switch, most, &noted));
        }
    });
    (address, requested)
}

fn hand_on(mut stream: TcpStream, switch: SocketAddr, most: usize, requested: &Mutex<Vec<String>>) {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap_or(0) == 1 {
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap();
    let Some(path) = head.split(' ').nth(1) else {
        return;
    };
    let so_far = {
        let mut requested = requested.lock().unwrap();
        let so_far = requested
            .iter()
            .filter(|one| *one == "/api/snapshot")
            .count();
        requested.push(path.to_owned());
        so_far
    };
    if path.starts_with("/api/") && so_far >= most {
        return;
    }
    let (head, body) = get(switch, path, "").unwrap();
    let _ = stream.write_all(format!("{head}\r\n\r\n{body}").as_bytes());
}

#[test]
fn the_page_shows_a_live_depth_and_a_flow_and_contacts_the_switch_only() {
    let _alone = alone();
    let watched = Watched::new();
    let (head, served) = get(watched.address, "/", "").unwrap();
    assert!(head.contains("default-src 'none'"), "{head}");
    assert!(served.contains("data-state=\"loading\""), "{served}");
    for path in ["/", "/metrics", "/api/snapshot", "/api/flows"] {
        let (head, _) = get_by(watched.address, "evil.example", path, "").unwrap();
        assert!(head.starts_with("HTTP/1.1 403"), "{path}: {head}");
        let (head, _) = get_by(watched.address, "dci1:9464", path, "").unwrap();
        assert!(head.starts_with("HTTP/1.1 200"), "{path}: {head}");
    }
    let (address, requested) = between(watched.address, usize::MAX);
    let Some(dom) = dom(address) else { return };
    assert!(dom.contains("data-state=\"live\""), "{dom}");
    let card = dom
        .split_once("wan0 queue 3")
        .unwrap_or_else(|| panic!("{dom}"))
        .1;
    let depth: u64 = after(card, "data-depth=\"").parse().unwrap();
    assert!(depth > 20_000, "the queue stands above shallow: {depth}");
    for part in [
        "class=\"zone ",
        "<path class=\"s0\" d=\"M",
        "shallow <b>",
        "kmin <b>",
    ] {
        assert!(card.contains(part), "{part}: {card}");
    }
    for part in [
        "dc0 ingress 3",
        "xoff <b>",
        "xon <b>",
        "0x31 &gt; 0x11",
        "no_route",
        "storm",
        "CNPs a second",
    ] {
        assert!(dom.contains(part), "{part}: {dom}");
    }
    // One clock: each time is UTC, in seconds.
    let times: Vec<&str> = dom.split("<time>").skip(1).collect();
    assert!(!times.is_empty() && dom.contains("Live, 20"), "{dom}");
    for time in times {
        let time = time.split('<').next().unwrap();
        assert!(time.len() == 20 && time.ends_with('Z'), "{time}");
    }
    assert!(!dom.contains(" us: "), "{dom}");
    let requested = requested.lock().unwrap();
    let known = [
        "/",
        "/style.css",
        "/app.js",
        "/chart.js",
        "/api/snapshot",
        "/api/flows",
        "/api/log",
        "/api/linux",
    ];
    assert!(
        requested.iter().all(|path| known.contains(&path.as_str())),
        "{requested:?}"
    );
    let looks = requested
        .iter()
        .filter(|path| *path == "/api/snapshot")
        .count();
    assert!(
        (4..=8).contains(&looks),
        "once a second for six seconds: {looks}"
    );
}

#[test]
fn a_switch_that_dies_is_shown_as_dead_with_its_last_values() {
    let _alone = alone();
    let mut watched = Watched::new();
    // Beside it a switch that is dead from the beginning, except for the page itself.
    let [dies, dead] = [3, 0].map(|most| between(watched.address, most).0);
    let never = std::thread::spawn(move || dom(dead));
    let died = dom(dies);
    let (Some(died), Some(never)) = (died, never.join().unwrap()) else {
        return;
    };
    assert!(died.contains("data-state=\"dead\""), "{died}");
    assert!(died.contains("has not answered since"), "{died}");
    let card = died
        .split_once("wan0 queue 3")
        .unwrap_or_else(|| panic!("{died}"))
        .1;
    assert!(after(card, "data-depth=\"").parse::<u64>().unwrap() > 0);
    assert!(never.contains("The switch does not answer."), "{never}");
    watched.running.kill().unwrap();
    watched.running.wait().unwrap();
    assert!(get(watched.address, "/", "").is_none());
}
