//! Recording layer of the log: writes messages, the event log's lines and panics as records, beside the layer that prints them.

use std::fmt::{self, Write as _};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use npcc_heap::records::{Record, Ring};
use npcc_heap::shared::SharedWords;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer};

use super::beats::wall;
use super::layout::{Head, RingKind, text_of, words_of};

/// Destination of this process's messages, set once there is a recorder.
static MESSAGES: OnceLock<Messages> = OnceLock::new();

/// Writer of messages into the recorder's ring.
#[derive(Debug)]
pub struct Messages {
    memory: Arc<SharedWords>,
    ring: Mutex<Ring>,
}

impl Messages {
    /// Creates a writer into `ring`.
    #[must_use]
    pub fn new(memory: Arc<SharedWords>, ring: Ring) -> Messages {
        Messages {
            memory,
            ring: Mutex::new(ring),
        }
    }

    /// Records all messages of the process from now on, panics too. A second recorder in one process gets none of them.
    pub fn listen(self) {
        if MESSAGES.set(self).is_err() {
            return;
        }
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if let Some(messages) = MESSAGES.get() {
                messages.panicked(&panic.to_string());
            }
            before(panic);
        }));
    }

    fn write(&self, level: u64, text: &str) {
        // A thread that panics while it holds the lock is in the middle of a record, which then stays without its number.
        let ring = self.ring.lock().unwrap_or_else(PoisonError::into_inner);
        let text = words_of(text, RingKind::Said.longest() - 2);
        ring.push([wall(), level].into_iter().chain(text));
    }

    fn panicked(&self, text: &str) {
        let thread = std::thread::current();
        let name = thread.name().unwrap_or("a thread without a name");
        self.write(PANIC, &format!("{name}: {text}"));
        if let Some(word) = self.memory.words().get(Head::Panicked as usize) {
            word.store(wall(), std::sync::atomic::Ordering::Release);
        }
    }
}

/// Level of a panic's record; other levels are those of [`level`].
const PANIC: u64 = 4;

const fn level(level: &Level) -> u64 {
    match *level {
        Level::ERROR => 3,
        Level::WARN => 2,
        _ => 1,
    }
}

/// Returns the name of a record's level.
const fn level_name(head: u64) -> &'static str {
    match head {
        PANIC => "panic",
        3 => "error",
        2 => "warning",
        _ => "info",
    }
}

/// Returns the level and the text of a record.
#[must_use]
pub fn message(record: &Record) -> (&'static str, String) {
    let text = record.words.get(2..).unwrap_or_default();
    let level = record.words.get(1).copied().unwrap_or_default();
    (level_name(level), text_of(text))
}

/// Layer of the log that writes messages into the recorder, once there is one.
#[derive(Debug)]
pub struct Recorded;

impl<S: Subscriber> Layer<S> for Recorded {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let Some(messages) = MESSAGES.get() else {
            return;
        };
        if *event.metadata().level() > Level::INFO {
            return;
        }
        let mut text = Text(String::new());
        event.record(&mut text);
        messages.write(level(event.metadata().level()), &text.0);
    }
}

/// Collector of an event's `message` field.
struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            // Writing to a string does not fail.
            let _ = write!(self.0, "{value:?}");
        }
    }
}
