//! As much of HTTP/1.1 (RFC 9112) as a metadata service needs: one request, one answer, within a deadline.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use crate::TEXT_BYTES_MAX;

const HEADERS_MAX: usize = 32;
const HEAD_BYTES_MAX: usize = 16 << 10;
const OK: u16 = 200;
const NOT_FOUND: u16 = 404;

/// A request.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// `GET` or `PUT`.
    pub method: &'a str,
    /// What is asked for.
    pub path: &'a str,
    /// A header and its value.
    pub header: Option<(&'a str, &'a str)>,
}

/// Asks, and gives the answer's text; `None` if the server has no such thing.
///
/// Errors: those of the network, `TimedOut`, and `InvalidData` for an answer that is none.
pub fn ask(
    server: SocketAddr,
    request: &Request<'_>,
    deadline: Instant,
) -> io::Result<Option<String>> {
    let mut stream = TcpStream::connect_timeout(&server, left(deadline)?)?;
    stream.set_write_timeout(Some(left(deadline)?))?;
    let Request { method, path, .. } = request;
    let header = request.header.iter();
    let header: String = header
        .map(|(name, value)| format!("{name}: {value}\r\n"))
        .collect();
    let host = server.ip();
    let head = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n");
    // A body of no bytes, for PUT.
    let text = format!("{head}{header}Content-Length: 0\r\n\r\n");
    stream.write_all(text.as_bytes())?;
    body(&read(&mut stream, deadline)?)
}

/// All until the server closes, or says that it is all.
fn read(stream: &mut TcpStream, deadline: Instant) -> io::Result<Vec<u8>> {
    let mut answer = Vec::new();
    let mut part = [0; 4096];
    while answer.len() <= HEAD_BYTES_MAX + TEXT_BYTES_MAX && !is_whole(&answer) {
        stream.set_read_timeout(Some(left(deadline)?))?;
        match stream.read(&mut part) {
            Ok(0) => break,
            Ok(read) => answer.extend_from_slice(part.get(..read).unwrap_or_default()),
            Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
            Err(why) => return Err(why),
        }
    }
    Ok(answer)
}

/// The time until then, which is never none, for that would be for ever.
fn left(deadline: Instant) -> io::Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    match left.is_zero() {
        true => Err(io::ErrorKind::TimedOut.into()),
        false => Ok(left),
    }
}

/// What an answer's head says.
struct Head {
    status: u16,
    bytes: usize,
    /// Of the body, if it is said.
    body_bytes: Option<usize>,
    is_chunked: bool,
}

/// `None` while it is not whole.
fn head(answer: &[u8]) -> io::Result<Option<Head>> {
    let wrong = |why: httparse::Error| io::Error::new(io::ErrorKind::InvalidData, why);
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut response = httparse::Response::new(&mut headers);
    let bytes = match response.parse(answer).map_err(wrong)? {
        httparse::Status::Complete(bytes) => bytes,
        httparse::Status::Partial => return Ok(None),
    };
    let value = |name: &str| {
        let mut headers = response.headers.iter();
        let found = headers.find(|header| header.name.eq_ignore_ascii_case(name))?;
        std::str::from_utf8(found.value).ok()
    };
    Ok(Some(Head {
        status: response.code.unwrap_or_default(),
        bytes,
        body_bytes: value("content-length").and_then(|text| text.trim().parse().ok()),
        is_chunked: value("transfer-encoding").is_some(),
    }))
}

fn is_whole(answer: &[u8]) -> bool {
    let Ok(Some(head)) = head(answer) else {
        return false;
    };
    let has = answer.len().saturating_sub(head.bytes);
    head.body_bytes.is_some_and(|bytes| has >= bytes)
}

fn body(answer: &[u8]) -> io::Result<Option<String>> {
    let wrong = |why: &str| io::Error::new(io::ErrorKind::InvalidData, why);
    let head = head(answer)?.ok_or(io::ErrorKind::UnexpectedEof)?;
    match head.status {
        OK => {}
        NOT_FOUND => return Ok(None),
        status => return Err(wrong(&format!("the server answers {status}"))),
    }
    let body = answer.get(head.bytes..).unwrap_or_default();
    let body = match head.body_bytes {
        Some(bytes) => body.get(..bytes).ok_or(io::ErrorKind::UnexpectedEof)?,
        None => body,
    };
    if head.is_chunked || body.len() > TEXT_BYTES_MAX {
        return Err(wrong("the answer is in chunks or too long"));
    }
    Ok(Some(String::from_utf8_lossy(body).into_owned()))
}
