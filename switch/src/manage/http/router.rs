//! Router of the management sockets: the operations of [`OPERATIONS`], each with its right, its input and its answer.

use std::error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use axum::routing::{MethodFilter, on};
use axum::{Extension, Router};
use http_body_util::LengthLimitError;
use npcc_api::operations::{Input, Method, OPERATIONS, Operation, Right};
use npcc_api::protocol::{self, ApiError, Reply, status};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::client::Client;
use super::{lines, problem};
use crate::manage::management::Management;
use crate::manage::{answer, capture, ends, tables};

/// Longest body of a request, in bytes.
const LONGEST: usize = 8 << 20;

/// Returns the router of all operations.
pub(in crate::manage) fn router(management: Arc<Management>) -> Router {
    let mut router: Router<Arc<Management>> = Router::new();
    for one in OPERATIONS {
        let handler = move |State(management), Extension(client), request| {
            answered(one, management, client, request)
        };
        let method = match one.method {
            Method::Get => MethodFilter::GET,
            Method::Post => MethodFilter::POST,
            Method::Patch => MethodFilter::PATCH,
            Method::Delete => MethodFilter::DELETE,
        };
        router = router.route(one.path, on(method, handler));
    }
    router
        .fallback(async || absent(status::NOT_FOUND, "there is no such path"))
        .method_not_allowed_fallback(async || {
            absent(status::METHOD_NOT_ALLOWED, "the path has no such method")
        })
        .with_state(management)
}

fn absent(status: u16, why: &str) -> Response {
    let hint = "see `npcc-switch schema --api`";
    problem::response(&ApiError::with_hint(status, why, hint))
}

/// Carries an operation out, and limits the time for reading the answer.
async fn answered(
    operation: &'static Operation,
    management: Arc<Management>,
    client: Arc<Client>,
    request: Request,
) -> Response {
    let within = client.limits.overall;
    let done = carried_out(operation, management, Arc::clone(&client), request).await;
    done.unwrap_or_else(|error| {
        client.answers(within);
        problem::response(&error)
    })
}

async fn carried_out(
    operation: &'static Operation,
    management: Arc<Management>,
    client: Arc<Client>,
    request: Request,
) -> Result<Response, ApiError> {
    admit(operation, &client)?;
    let bad = |why| ApiError::new(status::BAD_REQUEST, why);
    if operation.input == Input::Body {
        let (head, body) = request.into_parts();
        let body = read(operation, &head.headers, body, &client).await?;
        return work(client, move |client| {
            let input = match body {
                Some(body) => serde_json::from_slice(&body).map_err(|why| bad(why.to_string()))?,
                None => json!({}),
            };
            let request = operation.request(input).map_err(bad)?;
            response(answer::reply(
                (operation, &request),
                &management,
                client.author,
            ))
        })
        .await;
    }
    let query = request.uri().query().unwrap_or_default();
    let input = match operation.input {
        Input::Query => operation.parameters(query).map_err(bad)?,
        Input::None | Input::Body => Value::Null,
    };
    let media = operation.content.media_type().unwrap_or_default();
    Ok(match operation.request(input).map_err(bad)? {
        protocol::Request::Rows { table, query } => {
            lines::answer(media, client, move |out| {
                Ok(tables::write_rows(&table, &management.view, &query, out)?)
            })
            .await
        }
        protocol::Request::Ends { follow } => {
            lines::answer(media, client, move |out| {
                let view = &management.view;
                ends::export::write(follow, (&view.ends, view.clock), out)
            })
            .await
        }
        protocol::Request::Capture(wanted) => {
            let author = client.author;
            lines::answer(media, client, move |out| {
                capture::write(&wanted, &management, out, |reply| {
                    management.log_change(author, &wanted.name(), reply);
                })
            })
            .await
        }
        request => {
            return work(client, move |client| {
                response(answer::reply(
                    (operation, &request),
                    &management,
                    client.author,
                ))
            })
            .await;
        }
    })
}

/// Checks the place and the rights of a client.
fn admit(operation: &Operation, client: &Client) -> Result<(), ApiError> {
    let again = "try again";
    let place = match &client.place {
        Ok(place) => place,
        Err(why) => {
            return Err(ApiError::with_hint(status::TOO_MANY_REQUESTS, why, again));
        }
    };
    if !client.access.may(operation.right) {
        return Err(ApiError::with_hint(
            status::FORBIDDEN,
            format!(
                "`{}` changes something, and this socket is for reading",
                operation.name
            ),
            "use that of telemetry.socket",
        ));
    }
    // A capture may last.
    let is_short_change = operation.right != Right::Read && operation.name != "capture";
    if place.is_kept && !is_short_change {
        return Err(ApiError::with_hint(
            status::TOO_MANY_REQUESTS,
            "as many others are being served as may, and the last place is kept for changes",
            again,
        ));
    }
    Ok(())
}

/// Reads the body of a request; `None` if it has none.
async fn read(
    operation: &Operation,
    headers: &HeaderMap,
    body: Body,
    client: &Client,
) -> Result<Option<Bytes>, ApiError> {
    let too_long = || {
        let why = format!("the body is longer than {LONGEST} bytes");
        ApiError::with_hint(status::PAYLOAD_TOO_LARGE, why, "send it in parts")
    };
    let length = headers.get(header::CONTENT_LENGTH);
    let length = length.and_then(|text| text.to_str().ok()?.parse::<usize>().ok());
    match length {
        None if !headers.contains_key(header::TRANSFER_ENCODING) => {
            if operation.needs_input() {
                let why = "the request has no body";
                let hint = "send its fields as JSON";
                return Err(ApiError::with_hint(status::LENGTH_REQUIRED, why, hint));
            }
            return Ok(None);
        }
        Some(0) if !operation.needs_input() => return Ok(None),
        Some(length) if length > LONGEST => return Err(too_long()),
        _ => {}
    }
    let whole = timeout(client.limits.overall, to_bytes(body, LONGEST)).await;
    let slow = |_| {
        let why = "the body took too long";
        ApiError::new(status::REQUEST_TIMEOUT, why)
    };
    match whole.map_err(slow)? {
        Ok(body) => Ok(Some(body)),
        Err(error)
            if error
                .source()
                .is_some_and(|why| why.is::<LengthLimitError>()) =>
        {
            Err(too_long())
        }
        Err(error) => Err(ApiError::new(status::BAD_REQUEST, error.to_string())),
    }
}

/// Carries work out in a thread of its own, which holds the client's place, and answers with what it returns.
async fn work(
    client: Arc<Client>,
    work: impl FnOnce(&Client) -> Result<Response, ApiError> + Send + 'static,
) -> Result<Response, ApiError> {
    client.works();
    let done = spawn_blocking(move || {
        let done = catch_unwind(AssertUnwindSafe(|| work(&client)));
        client.answers(client.limits.overall);
        done
    });
    match done.await {
        Ok(Ok(done)) => done,
        _ => Err(problem::defect()),
    }
}

/// Makes the answer of a reply.
fn response(reply: Reply) -> Result<Response, ApiError> {
    match reply {
        Reply::Ready(ready) => json_of(&ready),
        Reply::Snapshot(snapshot) => json_of(&snapshot),
        Reply::Table(data) => json_of(&data),
        Reply::Reloaded(outcome) => json_of(&outcome),
        Reply::Suggested(all) => json_of(&all),
        Reply::Text(text) => Ok(content("application/yaml", text.into_bytes())),
        Reply::Done => {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::NO_CONTENT;
            Ok(response)
        }
        Reply::Refused(error) => Err(error),
    }
}

fn json_of(data: &impl Serialize) -> Result<Response, ApiError> {
    let mut text = serde_json::to_vec(data)
        .map_err(|error| ApiError::new(status::INTERNAL_ERROR, error.to_string()))?;
    text.push(b'\n');
    Ok(content("application/json", text))
}

fn content(media: &'static str, text: Vec<u8>) -> Response {
    let mut response = Response::new(Body::from(text));
    let media = HeaderValue::from_static(media);
    response.headers_mut().insert(header::CONTENT_TYPE, media);
    response
}
