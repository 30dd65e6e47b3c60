//! Switch that answers by HTTP as far as a feed uses it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::net::IpAddr;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use npcc_api::ends::{End, EndRow, Key, Transport};
use npcc_api::model::{Host, Port, Queue, Snapshot};
use npcc_testkit::http::{self, Received};
use serde_json::{Value, json};

#[derive(Debug, Default)]
struct State {
    table: BTreeMap<Key, End>,
    followers: Vec<Sender<EndRow>>,
    suggested: BTreeMap<String, BTreeMap<Key, End>>,
    leases: BTreeMap<String, Vec<Value>>,
    log: Vec<Value>,
    refuses: bool,
    hangs: bool,
}

/// Switch in threads.
#[derive(Debug)]
pub struct FakeSwitch {
    pub socket: PathBuf,
    state: Arc<Mutex<State>>,
}

pub fn end(number: u32, version: u64) -> End {
    End {
        from: IpAddr::from([10, 0, 2, (number % 200) as u8]),
        to: IpAddr::from([10, 0, 1, (number % 100) as u8]),
        queue_pair: number,
        udp_port: 49152,
        transport: Transport::Rc,
        first_seen: 1,
        // Two versions are too far apart for a refresh.
        last_seen: version * 10_000_000,
        packets: version,
        acked_psn: None,
        acked_at: None,
    }
}

impl FakeSwitch {
    pub fn start(socket: &Path) -> FakeSwitch {
        let listener = UnixListener::bind(socket).unwrap();
        let state = Arc::<Mutex<State>>::default();
        let served = Arc::clone(&state);
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let state = Arc::clone(&served);
                std::thread::spawn(move || serve(&client.unwrap(), &state));
            }
        });
        FakeSwitch {
            socket: socket.to_owned(),
            state,
        }
    }

    /// Sees ends.
    pub fn sees(&self, ends: impl IntoIterator<Item = End>) {
        let mut state = self.state.lock().unwrap();
        for end in ends {
            state.table.insert(end.key(), end);
            state
                .followers
                .retain(|to| to.send(EndRow::End(end)).is_ok());
        }
    }

    /// Drops ends from its table.
    pub fn drops(&self, keys: impl IntoIterator<Item = Key>) {
        let mut state = self.state.lock().unwrap();
        for key in keys {
            state.table.remove(&key);
            state
                .followers
                .retain(|to| to.send(EndRow::Gone(key)).is_ok());
        }
    }

    /// Loses rows: a change of the table without a row, and the note that rows were lost.
    pub fn loses(&self, ends: impl IntoIterator<Item = End>) {
        let mut state = self.state.lock().unwrap();
        state
            .table
            .extend(ends.into_iter().map(|end| (end.key(), end)));
        let rows = [vec![EndRow::Lost { count: 1 }], snapshot(&state)].concat();
        state
            .followers
            .retain(|to| rows.iter().all(|row| to.send(*row).is_ok()));
    }

    /// Refuses suggested ends as behind no port from now on, or takes them again.
    pub fn refuses(&self, refuses: bool) {
        self.state.lock().unwrap().refuses = refuses;
    }

    pub fn logs(&self, line: Value) {
        self.state.lock().unwrap().log.push(line);
    }

    /// Has this line alone in its log, as another process that logged once.
    pub fn logs_only(&self, line: Value) {
        self.state.lock().unwrap().log = vec![line];
    }

    /// Accepts connections and answers no request from now on.
    pub fn hangs(&self) {
        self.state.lock().unwrap().hangs = true;
    }

    /// Returns the rows that were suggested of a host.
    pub fn leases(&self, host: &str) -> Vec<Value> {
        self.state
            .lock()
            .unwrap()
            .leases
            .get(host)
            .cloned()
            .unwrap_or_default()
    }

    pub fn table(&self) -> BTreeSet<End> {
        self.state.lock().unwrap().table.values().copied().collect()
    }

    /// Returns the ends that were suggested of a peer and not called gone.
    pub fn suggested(&self, peer: &str) -> BTreeSet<End> {
        let state = self.state.lock().unwrap();
        let ends = state.suggested.get(peer);
        ends.into_iter()
            .flat_map(BTreeMap::values)
            .copied()
            .collect()
    }
}

fn serve(client: &UnixStream, state: &Mutex<State>) {
    let Ok(request) = http::read(client) else {
        return;
    };
    if state.lock().unwrap().hangs {
        std::thread::park();
    }
    // A client that goes away in the middle is its own affair.
    let _ = answer(&request, client, state);
}

fn answer(request: &Received, to: &UnixStream, state: &Mutex<State>) -> std::io::Result<()> {
    let lines = |rows: &[Value]| {
        let rows = rows
            .iter()
            .map(|row| json!({"row": row}).to_string() + "\n");
        let end = json!({"end": {"matched": 1, "next": null}});
        rows.collect::<String>() + &format!("{end}\n")
    };
    match (request.method.as_str(), request.path.as_str()) {
        ("GET", "/v1/snapshot") => http::write(to, 200, &json!(totals()).to_string()),
        ("GET", "/v1/ends") if request.query == "follow=true" => {
            http::write_head(to)?;
            stream(to, &follow(state))
        }
        ("POST", "/v1/ends") => {
            let all: Vec<Value> = serde_json::from_slice(&request.body).unwrap();
            let taken: Vec<Value> = all.iter().map(|of| taken(of, state)).collect();
            http::write(to, 200, &json!(taken).to_string())
        }
        ("GET", "/v1/hosts") => http::write(to, 200, &lines(&[json!(host())])),
        ("GET", "/v1/log") => http::write(to, 200, &lines(&state.lock().unwrap().log)),
        _ => http::write(
            to,
            404,
            &json!({"error": "there is no such path"}).to_string(),
        ),
    }
}

/// Returns the totals of a switch with one queue that waits.
fn totals() -> Snapshot {
    let mut queue = Queue {
        priority: 3,
        ..Queue::default()
    };
    queue.level.depth = 125_000;
    let mut snapshot = Snapshot {
        version: "0.0".to_owned(),
        seconds: 5.0,
        ports: vec![Port {
            name: "dci".to_owned(),
            link_speed: 100_000_000_000,
            queues: vec![queue],
            ..Port::default()
        }],
        ..Snapshot::default()
    };
    snapshot.npcc.cnps_sent = 3;
    snapshot.npcc.health.paired = 50.0;
    snapshot
}

/// Returns a host that ignores CNPs.
fn host() -> Host {
    let mut host = Host {
        address: "10.0.1.7".to_owned(),
        responsiveness: "unresponsive".to_owned(),
        flows: 4,
        paired: 3,
        unresponsive: 1,
        ..Host::default()
    };
    host.counts.cnps_sent = 9;
    host
}

/// Returns the rows of a snapshot, with their marks.
fn snapshot(state: &State) -> Vec<EndRow> {
    let rows = state.table.values().map(|end| EndRow::End(*end));
    let count = state.table.len() as u64;
    [EndRow::Begin]
        .into_iter()
        .chain(rows)
        .chain([EndRow::Complete { count }])
        .collect()
}

fn follow(state: &Mutex<State>) -> Receiver<EndRow> {
    let mut state = state.lock().unwrap();
    let (to, rows) = channel();
    for row in snapshot(&state) {
        to.send(row).unwrap();
    }
    state.followers.push(to);
    rows
}

fn stream(to: &UnixStream, rows: &Receiver<EndRow>) -> std::io::Result<()> {
    let mut out = std::io::BufWriter::new(to);
    while let Ok(row) = rows.recv() {
        writeln!(out, "{}", json!(row))?;
        for row in rows.try_iter() {
            writeln!(out, "{}", json!(row))?;
        }
        out.flush()?;
    }
    Ok(())
}

/// Takes what a peer or a host reports; returns the outcome.
fn taken(of: &Value, state: &Mutex<State>) -> Value {
    let rows = of["rows"].as_array().unwrap();
    assert!(rows.len() <= 1024);
    let mut state = state.lock().unwrap();
    if let Some(host) = of["host"].as_str() {
        let held = state.leases.entry(host.to_owned());
        held.or_default().extend(rows.iter().cloned());
        return json!({"accepted": rows.len(), "refused": {}});
    }
    if state.refuses {
        return json!({"accepted": 0, "refused": {"not-behind-port": rows.len()}});
    }
    let peer = of["peer"].as_str().unwrap().to_owned();
    let ends = state.suggested.entry(peer).or_default();
    for row in rows {
        match serde_json::from_value(row.clone()).unwrap() {
            EndRow::End(end) => _ = ends.insert(end.key(), end),
            EndRow::Gone(key) => _ = ends.remove(&key),
            _ => {}
        }
    }
    json!({"accepted": rows.len(), "refused": {}})
}
