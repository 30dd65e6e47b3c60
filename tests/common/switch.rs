//! A running switch, and what its command line says.

use std::ops::Deref;
use std::process::{ExitStatus, Output};
use std::time::Duration;

use npcc_api::client::blocking as client;
use npcc_api::model::Snapshot;
use npcc_api::protocol::{Reply, Request};
use npcc_testkit::wait;
use serde_json::Value;

use super::{Lab, Running, assert_success};

/// The command line, as the operator of this lab's switch uses it.
impl Lab {
    /// Runs a command of the switch's by a socket of this name.
    pub fn ask_by(&self, socket: &str, args: &[&str]) -> Output {
        let args = [args, &["--socket", socket]].concat();
        self.command(&args).output().unwrap()
    }

    /// Runs a command of the switch's.
    pub fn ask(&self, args: &[&str]) -> Output {
        self.ask_by("switch.sock", args)
    }

    /// Runs a command that must succeed; returns what it prints.
    pub fn done(&self, args: &[&str]) -> String {
        let output = self.ask(args);
        assert_success(&output);
        String::from_utf8(output.stdout).unwrap()
    }

    /// Returns a table of `show`, which may have arguments; null while the switch does not answer.
    pub fn show(&self, what: &str) -> Value {
        let words: Vec<&str> = what.split_whitespace().collect();
        let output = self.ask(&[&["show"], &words[..], &["--json"]].concat());
        serde_json::from_slice(&output.stdout).unwrap_or_default()
    }

    /// Waits until the switch answers.
    pub fn answers(&self) {
        let show = || self.ask(&["show", "ports"]);
        let awaited = || format!("an answer: {}", String::from_utf8_lossy(&show().stderr));
        wait::value(wait::LONG, awaited, || {
            show().status.success().then_some(())
        });
    }

    /// Waits until every worker forwards: before its first turn it discards what it receives.
    pub fn forwards(&self) {
        let turns = |worker: &Value| worker["loops"].as_u64() > Some(0);
        wait::until("every worker turns", wait::LONG, || {
            let workers = self.show("workers");
            workers.as_array().is_some_and(|all| all.iter().all(turns))
        });
    }

    /// Returns the number of turns that a thread of the switch has made, as its recorder has them. A turn is never shorter than the thread's
    /// pause, so that many turns are a time on the switch's side, however busy the machine is.
    pub fn turns(&self, thread: &str) -> u64 {
        let recorder: Value = serde_json::from_str(&self.done(&["recorder", "--json"])).unwrap();
        let mut threads = recorder["threads"].as_array().unwrap().iter();
        let one = threads.find(|one| one["name"] == thread);
        one.unwrap_or_else(|| panic!("no {thread}: {recorder:#}"))["loops"]
            .as_u64()
            .unwrap()
    }

    /// Waits until a thread of the switch has made so many more turns.
    pub fn turn(&self, thread: &str, turns: u64) {
        let before = self.turns(thread);
        let awaited = format!("{turns} turns of the {thread}");
        wait::until(&awaited, wait::LONG, || {
            self.turns(thread) >= before + turns
        });
    }

    /// Returns the totals of a switch that has ended, whose account of all frames must close.
    pub fn totals(&self) -> Snapshot {
        let text = std::fs::read_to_string(self.path("stats.json")).unwrap();
        let snapshot: Snapshot = serde_json::from_str(&text).unwrap();
        assert!(snapshot.conservation.holds(), "{:?}", snapshot.conservation);
        snapshot
    }
}

/// A running switch and its lab.
pub struct Switch {
    pub lab: Lab,
    pub child: Running,
}

impl Deref for Switch {
    type Target = Lab;

    fn deref(&self) -> &Lab {
        &self.lab
    }
}

impl Switch {
    /// Starts the switch of a lab whose configuration is written, and waits until it answers and forwards.
    pub fn start(lab: Lab) -> Switch {
        let switch = Switch::start_with(lab, &[]);
        switch.forwards();
        switch
    }

    /// Starts the switch with these variables in its environment, and waits until it answers.
    pub fn start_with(lab: Lab, variables: &[(&str, &str)]) -> Switch {
        let switch = Switch::starting(lab, variables);
        switch.answers();
        switch
    }

    /// Starts the switch without waiting until it answers.
    pub fn starting(lab: Lab, variables: &[(&str, &str)]) -> Switch {
        let args = ["run", "-c", "switch.yaml", "--stats-json", "stats.json"];
        let file = |name| std::fs::File::create(lab.path(name)).unwrap();
        let mut command = lab.command(&args);
        command.envs(variables.iter().copied());
        command.stdout(file("stdout")).stderr(file("log"));
        let child = Running::of(command.spawn().unwrap());
        Switch { lab, child }
    }

    /// Returns its totals until now.
    pub fn snapshot(&self) -> Snapshot {
        let reply = client::ask(&self.lab.path("switch.sock"), &Request::Snapshot).unwrap();
        let Reply::Snapshot(snapshot) = reply else {
            panic!("{reply:?}");
        };
        *snapshot
    }

    /// Returns true if each of the first ports has received so many frames and pauses nobody, and the switch holds no frame any more.
    pub fn has_passed(&self, frames: &[usize]) -> bool {
        let snapshot = self.snapshot();
        let mut ports = snapshot.ports.iter().zip(frames);
        ports.all(|(port, frames)| port.rx.packets == *frames as u64 && port.flow.asserted == 0)
            && snapshot.conservation.held.packets == 0
    }

    /// Returns the number of flows whose senders were signalled.
    pub fn signalled(&self) -> usize {
        let flows = self.show("flows");
        let all = flows.as_array().into_iter().flatten();
        all.filter(|flow| flow["cnps"].as_u64() > Some(0)).count()
    }

    /// Returns what it wrote to standard error.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.path("log")).unwrap()
    }

    /// Waits until `holds` returns true.
    pub fn until(&self, what: &str, holds: impl Fn() -> bool) {
        let awaited = || format!("{what}: {}", self.log());
        wait::value(wait::LONG, awaited, || holds().then_some(()));
    }

    /// Sends a signal, such as `TERM`.
    pub fn signal(&self, name: &str) {
        self.child.signal(name);
    }

    /// Waits, at most `within`, for the end.
    pub fn ended(&mut self, within: Duration) -> ExitStatus {
        let log = self.path("log");
        let awaited = || format!("its end: {}", std::fs::read_to_string(log).unwrap());
        wait::value(within, awaited, || self.child.try_wait().unwrap())
    }

    /// Ends the switch with SIGKILL, as a crash does.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Stops the switch, which must end cleanly and take its sockets away; returns its totals.
    pub fn stop(&mut self) -> Snapshot {
        self.signal("TERM");
        let status = self.ended(wait::LONG);
        assert!(status.success(), "{status}: {}", self.log());
        for name in ["switch.sock", "switch-ro.sock"] {
            assert!(!self.path(name).exists(), "{name} is left");
        }
        self.totals()
    }
}
