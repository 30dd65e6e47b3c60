//! Connection to one server that notes the server's complaints.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_nats::{Client, ConnectError, Event};

use crate::bus::{ConnectFailure, options};
use crate::settings::Settings;

/// Time in which a server complains of a message.
pub(super) const COMPLAINT: Duration = Duration::from_millis(300);

/// Connection to one server.
pub(super) struct Probe {
    pub(super) server: String,
    pub(super) client: Client,
    complaints: Arc<Mutex<Vec<String>>>,
}

impl Probe {
    /// Connects to one server, once.
    pub(super) async fn connect(
        settings: &Settings,
        server: &str,
    ) -> Result<Probe, ConnectFailure> {
        let complaints = Arc::<Mutex<Vec<String>>>::default();
        let noted = Arc::clone(&complaints);
        let options = options(&settings.bus, &settings.prefix())?
            .ignore_discovered_servers()
            .event_callback(move |event| {
                if let Event::ServerError(error) = event {
                    let mut noted = noted.lock().unwrap_or_else(PoisonError::into_inner);
                    noted.push(error.to_string().to_lowercase());
                }
                async {}
            });
        let client: Result<Client, ConnectError> = options.connect(server).await;
        Ok(Probe {
            server: server.to_owned(),
            client: client?,
            complaints,
        })
    }

    /// Publishes a message; returns true if the server did not complain of it.
    pub(super) async fn may_publish(&self, subject: &str) -> bool {
        let sent = self
            .client
            .publish(subject.to_owned(), "probe".into())
            .await;
        sent.is_ok() && !self.complains(subject).await
    }

    /// Subscribes; returns true if the server did not complain of it.
    pub(super) async fn may_subscribe(&self, subject: &str) -> bool {
        let subscribed = self.client.subscribe(subject.to_owned()).await;
        subscribed.is_ok() && !self.complains(subject).await
    }

    async fn complains(&self, subject: &str) -> bool {
        let _ = tokio::time::timeout(COMPLAINT, self.client.flush()).await;
        tokio::time::sleep(COMPLAINT).await;
        let complaints = self
            .complaints
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        complaints
            .iter()
            .any(|text| text.contains("permissions") && text.contains(subject))
    }
}
