//! Connection to a server, from the settings.

use std::time::Duration;

use async_nats::{Client, ConnectError, ConnectOptions};

use crate::settings::{Bus, SecretError, read_secret};

/// Time between pings: a server that does not answer two of them is left for another.
const PING: Duration = Duration::from_millis(500);
/// Longest time to connect to one server.
const CONNECT: Duration = Duration::from_secs(1);
/// Time between attempts to connect again.
const AGAIN: Duration = Duration::from_millis(250);
/// Most messages that wait for the server.
const OUT: usize = 256;
/// Most messages that wait in a subscription.
const IN: usize = 4096;

/// Reason why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectFailure {
    /// A secret cannot be used.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// The credentials file is not one.
    #[error("the credentials file is not one that nsc wrote: {0}")]
    Credentials(std::io::Error),
    /// No server, or it refused.
    #[error("{0}")]
    Server(#[from] ConnectError),
}

/// Returns the client's options. `prefix` is that of the subjects under which it may publish, such as `npcc.SITE.BOX`.
///
/// # Errors
/// Fails if a secret cannot be used.
pub fn options(bus: &Bus, prefix: &str) -> Result<ConnectOptions, ConnectFailure> {
    let options = ConnectOptions::new()
        .name(prefix)
        .custom_inbox_prefix(format!("{prefix}.inbox"))
        .ping_interval(PING)
        .connection_timeout(CONNECT)
        .client_capacity(OUT)
        .subscription_capacity(IN)
        // A box's own server is the first.
        .retain_servers_order()
        // Whoever answers as a server could otherwise name any address, and would be sent the password there.
        .ignore_discovered_servers()
        .reconnect_delay_callback(|_| AGAIN)
        .no_echo();
    Ok(with_tls(bus, with_identity(bus, options)?))
}

fn with_identity(bus: &Bus, options: ConnectOptions) -> Result<ConnectOptions, ConnectFailure> {
    if let Some(path) = &bus.nkey_file {
        return Ok(options.nkey(read_secret(path)?));
    }
    if let Some(path) = &bus.credentials_file {
        let credentials = options.credentials(&read_secret(path)?);
        return credentials.map_err(ConnectFailure::Credentials);
    }
    match (&bus.user, &bus.password_file) {
        (Some(user), Some(path)) => Ok(options.user_and_password(user.clone(), read_secret(path)?)),
        _ => Ok(options),
    }
}

fn with_tls(bus: &Bus, mut options: ConnectOptions) -> ConnectOptions {
    let wanted = |server: &String| server.starts_with("tls://");
    options = options.require_tls(bus.tls.is_some() || bus.servers.iter().any(wanted));
    if let Some(tls) = &bus.tls {
        options = options.add_root_certificates(tls.ca.clone());
        if let (Some(certificate), Some(key)) = (&tls.certificate, &tls.key) {
            options = options.add_client_certificate(certificate.clone(), key.clone());
        }
    }
    options
}

/// Connects to the first server that answers, once.
///
/// # Errors
/// Fails if none does.
pub async fn connect(bus: &Bus, prefix: &str) -> Result<Client, ConnectFailure> {
    let options = options(bus, prefix)?;
    Ok(options.connect(bus.servers.as_slice()).await?)
}
