//! Connection of a client: one request, and its answer.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::UnixStream;
use tokio::time::interval;

use super::client::Client;

/// Interval at which the limits of a client are checked.
const SLICE: Duration = Duration::from_millis(50);
/// Largest size of a request's head, in bytes.
const HEAD: usize = 16 << 10;

/// Serves a client until it has its answer, is too slow or goes away, or until the switch stops.
pub(in crate::manage) async fn serve(stream: UnixStream, router: Router, client: Arc<Client>) {
    let router = router.layer(Extension(Arc::clone(&client)));
    let mut connection = pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(client.head())
            .max_buf_size(HEAD)
            .keep_alive(false)
            .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router))
    );
    let mut slices = interval(SLICE);
    while !client.is_over() {
        tokio::select! {
            // A client that goes away in the middle is no error of ours.
            _ = connection.as_mut() => return,
            _ = slices.tick() => {}
        }
    }
}
