//! HTTP by hand over any stream: requests that a stand-in for a switch answers, and answers to a test's own requests.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

/// Request that arrived.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Received {
    /// Method.
    pub method: String,
    /// Path, without the parameters behind it.
    pub path: String,
    /// Parameters behind the path.
    pub query: String,
    /// Body.
    pub body: Vec<u8>,
}

/// Reads a request.
///
/// # Errors
/// Fails if the stream ends before the request does.
pub fn read(stream: impl Read) -> io::Result<Received> {
    let mut from = BufReader::new(stream);
    let mut line = String::new();
    from.read_line(&mut line)?;
    let mut words = line.split(' ').map(str::to_owned);
    let (method, target) = (words.next(), words.next());
    let target = target.ok_or(io::ErrorKind::UnexpectedEof)?;
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let mut length = 0;
    loop {
        line.clear();
        from.read_line(&mut line)?;
        let Some((name, value)) = line.split_once(':') else {
            break;
        };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    let mut body = vec![0; length];
    from.read_exact(&mut body)?;
    Ok(Received {
        method: method.unwrap_or_default(),
        path: path.to_owned(),
        query: query.to_owned(),
        body,
    })
}

/// Writes an answer.
///
/// # Errors
/// Fails if the client goes away.
pub fn write(mut stream: impl Write, status: u16, body: &str) -> io::Result<()> {
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status} Status\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
}

/// Writes the head of an answer that ends with the connection.
///
/// # Errors
/// Fails if the client goes away.
pub fn write_head(mut stream: impl Write) -> io::Result<()> {
    stream.write_all(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n")
}

/// Sends octets to a Unix socket and returns the status and the body of the answer, which is read to the end of the connection; status 0
/// without an answer.
///
/// # Errors
/// Fails if nobody listens there.
pub fn exchange(socket: &Path, octets: &[u8]) -> io::Result<(u16, String)> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(crate::wait::LONG))?;
    // A client that is refused in the middle of its request gets the answer all the same.
    let _ = stream.write_all(octets);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let status = answer.split(' ').nth(1).and_then(|word| word.parse().ok());
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    Ok((status.unwrap_or(0), body.to_owned()))
}

/// Sends a request with a body of JSON, or without one where that is empty; see [`exchange`].
///
/// # Errors
/// Fails if nobody listens there.
pub fn ask(socket: &Path, method: &str, target: &str, body: &str) -> io::Result<(u16, String)> {
    let length = body.len();
    let length = match length {
        0 => String::new(),
        _ => format!("content-length: {length}\r\n"),
    };
    // Version 1.0 has bodies in one piece.
    let request = format!("{method} {target} HTTP/1.0\r\nhost: localhost\r\n{length}\r\n{body}");
    exchange(socket, request.as_bytes())
}
