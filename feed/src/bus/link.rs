//! Link to the bus for the whole run: it connects again by itself, and neither direction ever waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_nats::connection::State;
use async_nats::{Client, Event, ReconnectToServer};
use futures_util::StreamExt;
use tokio::sync::{Notify, mpsc};

use super::connect::{ConnectFailure, options};
use super::counts::{BusCounts, count};
use crate::settings::Bus;

/// Result of publishing a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Published {
    /// The message is in the queue to the server.
    Sent,
    /// The queue to the server is full, or there is no connection: a later attempt may succeed.
    Full,
    /// The message can never be sent, such as one longer than the server takes.
    Refused,
}

/// Link to the bus.
#[derive(Debug, Clone)]
pub struct Link {
    client: Client,
    counts: Arc<BusCounts>,
    connected: Arc<Notify>,
}

impl Link {
    /// Makes a link that connects in the background, now and whenever the connection is lost.
    ///
    /// # Errors
    /// Fails if a secret cannot be used.
    pub async fn open(
        bus: &Bus,
        prefix: &str,
        counts: &Arc<BusCounts>,
    ) -> Result<Link, ConnectFailure> {
        let connected = Arc::new(Notify::new());
        let (noted, notify) = (Arc::clone(counts), Arc::clone(&connected));
        let attempts = AtomicUsize::new(0);
        let options = options(bus, prefix)?
            .retry_on_initial_connect()
            // Every other attempt is for the server that failed least often: one in their order ends at a server that refuses the credentials.
            .reconnect_to_server_callback(move |servers, _| {
                let is_other = attempts.fetch_add(1, Ordering::Relaxed) % 2 == 1;
                let servers = servers.into_iter().filter(|_| is_other);
                let next = servers.min_by_key(|server| server.failed_attempts);
                let next = next.map(|server| ReconnectToServer {
                    addr: server.addr,
                    delay: None,
                });
                async { next }
            })
            .event_callback(move |event| {
                note(&noted, &notify, &event);
                async {}
            });
        let client = options.connect(bus.servers.as_slice()).await?;
        Ok(Link {
            client,
            counts: Arc::clone(counts),
            connected,
        })
    }

    /// Returns true while a server is connected.
    #[must_use]
    pub fn is_up(&self) -> bool {
        self.client.connection_state() == State::Connected
    }

    /// Waits until a connection is made.
    pub async fn reconnected(&self) {
        self.connected.notified().await;
    }

    /// Publishes a message; returns at once if that is not possible.
    pub async fn publish(&self, subject: &str, bytes: &[u8]) -> Published {
        if !self.is_up() {
            return Published::Full;
        }
        let sending = self
            .client
            .publish(subject.to_owned(), bytes.to_vec().into());
        match tokio::time::timeout(Duration::ZERO, sending).await {
            Ok(Ok(())) => {
                count(&self.counts.published, 1);
                count(&self.counts.published_bytes, bytes.len() as u64);
                Published::Sent
            }
            Ok(Err(_)) => {
                count(&self.counts.refused, 1);
                Published::Refused
            }
            Err(_) => {
                count(&self.counts.full, 1);
                Published::Full
            }
        }
    }

    /// Publishes a record; drops and counts it if it cannot be queued at once.
    pub async fn publish_record(&self, subject: &str, bytes: &[u8]) {
        if self.publish(subject, bytes).await != Published::Sent {
            count(&self.counts.records_dropped, 1);
        }
    }

    /// Decodes each message with `read(subject, payload)` and passes it to `to`; drops and counts it while `to` is full. One
    /// subscription for several subjects keeps their order.
    ///
    /// # Errors
    /// Fails if the client has ended.
    pub async fn subscribe<T: Send + 'static>(
        &self,
        subject: String,
        to: mpsc::Sender<T>,
        read: impl Fn(&str, &[u8]) -> Option<T> + Send + 'static,
    ) -> Result<(), async_nats::SubscribeError> {
        let mut messages = self.client.subscribe(subject).await?;
        let counts = Arc::clone(&self.counts);
        tokio::spawn(async move {
            while let Some(message) = messages.next().await {
                let Some(received) = read(message.subject.as_str(), &message.payload) else {
                    continue;
                };
                count(&counts.received, 1);
                match to.try_send(received) {
                    Ok(()) => {}
                    Err(mpsc::error::TrySendError::Full(_)) => count(&counts.slow, 1),
                    Err(mpsc::error::TrySendError::Closed(_)) => return,
                }
            }
        });
        Ok(())
    }

    /// Flushes queued messages, for at most 500 ms.
    pub async fn close(&self) {
        let _ = tokio::time::timeout(Duration::from_millis(500), self.client.flush()).await;
    }
}

fn note(counts: &BusCounts, connected: &Notify, event: &Event) {
    match event {
        Event::Connected => {
            count(&counts.connected, 1);
            connected.notify_one();
        }
        Event::Disconnected => count(&counts.disconnected, 1),
        Event::SlowConsumer(_) => count(&counts.slow, 1),
        Event::ServerError(_) | Event::ClientError(_) => count(&counts.refused, 1),
        Event::LameDuckMode | Event::Draining | Event::Closed => {}
    }
}
