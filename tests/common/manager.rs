//! A service manager of the test's own, with a descriptor store: `tests/manager/manager.py`. Entries of its journal.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use super::{Running, root};

/// Longest wait for a line of the service manager.
const PATIENCE: Duration = Duration::from_secs(60);

/// Service manager with a descriptor store. When it is dropped, it and the command it runs end at once.
pub struct Manager {
    python: Running,
    orders: ChildStdin,
    lines: Receiver<String>,
    /// ID of the process that runs.
    pub pid: u32,
    /// File with what all processes wrote to standard error, one after the other.
    said: PathBuf,
}

impl Manager {
    /// Runs a command, which is restarted whenever it ends; `folder` holds the manager's socket and log.
    pub fn start(folder: &Path, command: &Command) -> Manager {
        let said = folder.join("stderr");
        let mut python = Command::new("/usr/bin/python3");
        python
            .arg("-B")
            .arg(root().join("tests/manager/manager.py"))
            .arg(folder.join("notify"))
            .arg(command.get_program())
            .args(command.get_args())
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(&said).unwrap());
        let mut python = python.spawn().unwrap();
        let (orders, lines) = (python.stdin.take().unwrap(), python.stdout.take().unwrap());
        let (tell, signalled) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(lines).lines().map_while(Result::ok) {
                // Lines after the test's end, which the switch itself prints, have no receiver.
                let _ = tell.send(line);
            }
        });
        let mut manager = Manager {
            python: Running::of(python),
            orders,
            lines: signalled,
            pid: 0,
            said,
        };
        manager.pid = manager.started();
        manager
    }

    fn order(&mut self, what: &str) {
        writeln!(self.orders, "{what}").unwrap();
    }

    /// Returns the rest of the next line that begins with `word`.
    fn line(&self, word: &str) -> String {
        loop {
            let line = self.lines.recv_timeout(PATIENCE);
            let line = line.unwrap_or_else(|_| panic!("no line `{word}`: {}", self.said()));
            if let Some(rest) = line.strip_prefix(word) {
                return rest.trim().to_owned();
            }
        }
    }

    fn started(&self) -> u32 {
        self.line("started ").parse().unwrap()
    }

    /// Sends the manager itself a signal, such as `STOP`.
    pub fn signal(&self, name: &str) {
        self.python.signal(name);
    }

    /// Kills the process and waits until the next is started.
    pub fn kill(&mut self) {
        self.order("kill");
        assert_eq!(self.line("ended "), "-9", "{}", self.said());
        self.pid = self.started();
    }

    /// Stops the process cleanly and waits until the next is started.
    pub fn restart(&mut self) {
        self.order("restart");
        assert_eq!(self.line("ended "), "0", "{}", self.said());
        self.pid = self.started();
    }

    /// Stops the process cleanly, and discards the store.
    pub fn stop(mut self) {
        self.order("stop");
        assert_eq!(self.line("ended "), "0", "{}", self.said());
        self.pid = 0;
    }

    /// Returns the names in the store, in order.
    pub fn names(&mut self) -> Vec<String> {
        self.order("names");
        let line = self.line("names");
        line.split_whitespace().map(str::to_owned).collect()
    }

    /// Stores a descriptor of a file under a name.
    pub fn put(&mut self, name: &str, path: &str) {
        self.order(&format!("put {name} {path}"));
    }

    /// Stores the unpacked bytes of a gzip file under a name, in sealed memory, replacing what had the name.
    pub fn seal(&mut self, name: &str, path: &Path) {
        self.order(&format!("seal {name} {}", path.display()));
    }

    /// Removes a descriptor from the store.
    pub fn forget(&mut self, name: &str) {
        self.order(&format!("drop {name}"));
    }

    /// Returns what all processes wrote to standard error.
    pub fn said(&self) -> String {
        std::fs::read_to_string(&self.said).unwrap_or_default()
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        // The kernel ends the process with the manager, unless it has become another user.
        if self.pid != 0 {
            let _ = Command::new("kill")
                .args(["-KILL", &self.pid.to_string()])
                .status();
        }
    }
}

/// Parses the fields of an entry as the journal's socket takes them.
pub fn fields(mut entry: &[u8]) -> BTreeMap<String, String> {
    let mut fields = BTreeMap::new();
    while let Some(end) = entry.iter().position(|byte| *byte == b'\n') {
        let line = String::from_utf8_lossy(&entry[..end]).into_owned();
        entry = &entry[end + 1..];
        if let Some((name, value)) = line.split_once('=') {
            fields.insert(name.to_owned(), value.to_owned());
            continue;
        }
        // A value of several lines is preceded by its length.
        let length = u64::from_le_bytes(entry[..8].try_into().unwrap());
        let length = usize::try_from(length).unwrap();
        let value = String::from_utf8_lossy(&entry[8..8 + length]).into_owned();
        fields.insert(line, value);
        entry = &entry[8 + length + 1..];
    }
    fields
}
