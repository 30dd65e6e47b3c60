//! Answers that are errors.

use axum::body::Body;
use axum::http::{StatusCode, header};
use axum::response::Response;
use npcc_api::protocol::{ApiError, status};

/// Returns the error of a request that panicked.
pub(in crate::manage) fn defect() -> ApiError {
    let why = "a defect: the request panicked; its message is in the switch's standard error, please report it";
    ApiError::new(status::INTERNAL_ERROR, why)
}

/// Returns the answer to a request that is refused.
pub(in crate::manage) fn response(error: &ApiError) -> Response {
    // Texts always encode.
    let text = serde_json::to_vec(&error.problem).unwrap_or_default();
    let mut response = Response::new(Body::from([text, b"\n".to_vec()].concat()));
    *response.status_mut() =
        StatusCode::from_u16(error.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let json = header::HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}
