//! State of the screen: the last two looks, and what keys chose.

use npcc_api::model::{Flow, NpccQueue, Port, Queue, Snapshot};
use npcc_pipeline::num::real;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// One look at the switch.
#[derive(Debug, Clone, Default)]
pub(super) struct Seen {
    pub(super) snapshot: Snapshot,
    pub(super) flows: Vec<Flow>,
}

npcc_pipeline::named! {
    /// Sort order of flows.
    pub(super) enum Sort {
        Bytes = "bytes",
        Cnps = "CNPs",
        Queue = "queue",
        Sender = "sender",
    }
}

impl Sort {
    fn next(self) -> Sort {
        Sort::from_index(self.index() + 1).unwrap_or(Sort::Bytes)
    }
}

/// An egress queue that is worth a line.
#[derive(Debug)]
pub(super) struct Line<'a> {
    pub(super) port: &'a Port,
    pub(super) queue: &'a Queue,
    pub(super) watched: Option<&'a NpccQueue>,
    /// CNPs and marks a second.
    pub(super) cnps: f64,
    pub(super) marked: f64,
}

impl Line<'_> {
    pub(super) fn depth(&self) -> u64 {
        let seen = self.watched.map_or(0, |watched| watched.depth);
        self.queue.level.depth.max(seen)
    }
}

/// See the module's text.
#[derive(Debug)]
pub(super) struct State {
    pub(super) now: Seen,
    before: Option<Snapshot>,
    /// Why the last look failed.
    pub(super) error: Option<String>,
    pub(super) sort: Sort,
    pub(super) reversed: bool,
    pub(super) filter: String,
    pub(super) typing: bool,
    pub(super) held: bool,
    /// Flows above the first that is shown.
    pub(super) above: usize,
}

impl State {
    pub(super) const fn new(now: Seen) -> State {
        State {
            now,
            before: None,
            error: None,
            sort: Sort::Bytes,
            reversed: false,
            filter: String::new(),
            typing: false,
            held: false,
            above: 0,
        }
    }

    /// Takes a new look in, unless the screen is held.
    pub(super) fn look(&mut self, seen: Seen) {
        self.error = None;
        if self.held {
            return;
        }
        let old = std::mem::replace(&mut self.now, seen).snapshot;
        // A switch that was started anew counts from 0.
        self.before = (old.seconds < self.now.snapshot.seconds).then_some(old);
    }

    /// Notes that the switch did not answer; what it said last stays.
    pub(super) fn lost(&mut self, why: &str) {
        self.error = Some(why.to_owned());
    }

    /// Obeys a key; whether that ends the screen.
    pub(super) fn key(&mut self, key: KeyEvent) -> bool {
        if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') {
            return true;
        }
        if self.typing {
            self.type_filter(key.code);
            return false;
        }
        match key.code {
            KeyCode::Char('q') | KeyCode::Esc => return true,
            KeyCode::Char('s') => self.sort = self.sort.next(),
            KeyCode::Char('r') => self.reversed = !self.reversed,
            KeyCode::Char('/') => self.typing = true,
            KeyCode::Char('c') => self.filter.clear(),
            KeyCode::Char(' ') => self.held = !self.held,
            KeyCode::Down | KeyCode::Char('j') => self.above += 1,
            KeyCode::Up | KeyCode::Char('k') => self.above = self.above.saturating_sub(1),
            KeyCode::PageDown => self.above += 10,
            KeyCode::PageUp => self.above = self.above.saturating_sub(10),
            KeyCode::Home => self.above = 0,
            _ => {}
        }
        false
    }

    fn type_filter(&mut self, key: KeyCode) {
        match key {
            KeyCode::Enter => self.typing = false,
            KeyCode::Esc => {
                self.typing = false;
                self.filter.clear();
            }
            KeyCode::Backspace => _ = self.filter.pop(),
            KeyCode::Char(letter) => self.filter.push(letter),
            _ => {}
        }
        self.above = 0;
    }

    /// How fast a counter of the snapshot grew; one that was cleared grew by nothing.
    pub(super) fn rate(&self, of: impl Fn(&Snapshot) -> u64) -> f64 {
        let Some(before) = &self.before else {
            return 0.0;
        };
        let grown = of(&self.now.snapshot).saturating_sub(of(before));
        real(grown) / (self.now.snapshot.seconds - before.seconds).max(1e-3)
    }

    /// Queues that are watched, and others that held something: the watched first.
    pub(super) fn queues(&self) -> Vec<Line<'_>> {
        let snapshot = &self.now.snapshot;
        let mut lines = Vec::new();
        for (at, port) in snapshot.ports.iter().enumerate() {
            for (of, queue) in port.queues.iter().enumerate() {
                let is = |one: &NpccQueue| one.port == port.name && one.priority == queue.priority;
                let watched = snapshot.npcc.queues.iter().find(|one| is(one));
                if watched.is_none() && queue.peak == 0 {
                    continue;
                }
                let cnps = self.rate(|all| {
                    all.npcc
                        .queues
                        .iter()
                        .filter(|one| is(one))
                        .map(|one| one.cnps)
                        .sum()
                });
                let marked = self.rate(|all| {
                    let queue = all.ports.get(at).and_then(|port| port.queues.get(of));
                    queue.map_or(0, |queue| queue.ecn_marked)
                });
                lines.push(Line {
                    port,
                    queue,
                    watched,
                    cnps,
                    marked,
                });
            }
        }
        lines.sort_by_key(|line| line.watched.is_none());
        lines
    }

    /// The flows that are wanted, in order.
    pub(super) fn flows(&self) -> Vec<&Flow> {
        let wanted = self.filter.to_lowercase();
        let has = |flow: &&Flow| {
            let refused = flow.refused.as_deref().unwrap_or_default();
            let fields = [&*flow.src, &flow.dst, &flow.port, &flow.evidence, refused];
            fields
                .iter()
                .any(|field| field.to_lowercase().contains(&wanted))
        };
        let mut flows: Vec<&Flow> = self.now.flows.iter().filter(has).collect();
        flows.sort_by(|a, b| match self.sort {
            Sort::Bytes => b.bytes.cmp(&a.bytes),
            Sort::Cnps => (b.cnps + b.would_send).cmp(&(a.cnps + a.would_send)),
            Sort::Queue => (&a.port, a.priority).cmp(&(&b.port, b.priority)),
            Sort::Sender => (&a.src, a.dest_qp).cmp(&(&b.src, b.dest_qp)),
        });
        if self.reversed {
            flows.reverse();
        }
        flows
    }
}
