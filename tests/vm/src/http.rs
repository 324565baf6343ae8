//! An HTTP client that puts servers under load: many connections, each answer checked.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::clients::together;

/// A request that any server answers, for the first sign of life.
pub const HELLO: &[u8] = b"GET / HTTP/1.0\r\n\r\n";

/// Whether connections are used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connections {
    /// One connection for each request.
    Fresh,
    /// One connection for each client.
    Kept,
}

/// `clients` ask `requests` times each for `path`; every answer must be 200 and have
/// `expected` in its body.
pub fn load(
    address: SocketAddr,
    path: &str,
    expected: &str,
    clients: usize,
    requests: usize,
    connections: Connections,
) -> Result<(), String> {
    together(clients, |_| match connections {
        Connections::Fresh => {
            (0..requests).try_for_each(|_| Client::new(address)?.get(path, expected))
        }
        Connections::Kept => {
            let mut client = Client::new(address)?;
            (0..requests).try_for_each(|_| client.get(path, expected))
        }
    })
}

struct Client(BufReader<TcpStream>);

impl Client {
    fn new(address: SocketAddr) -> Result<Self, String> {
        let stream = TcpStream::connect(address).map_err(|error| error.to_string())?;
        let timeout = stream.set_read_timeout(Some(Duration::from_secs(30)));
        timeout.map_err(|error| error.to_string())?;
        Ok(Self(BufReader::new(stream)))
    }

    fn get(&mut self, path: &str, expected: &str) -> Result<(), String> {
        self.exchange(path, expected)
            .map_err(|why| format!("GET {path}: {why}"))
    }

    fn exchange(&mut self, path: &str, expected: &str) -> Result<(), String> {
        let io = |error: std::io::Error| error.to_string();
        let request = format!("GET {path} HTTP/1.1\r\nHost: sietch\r\n\r\n");
        self.0.get_mut().write_all(request.as_bytes()).map_err(io)?;
        let mut status = String::new();
        self.0.read_line(&mut status).map_err(io)?;
        if !status.contains(" 200 ") {
            return Err(format!("the answer is {:?}", status.trim_end()));
        }
        let mut body_len = None;
        loop {
            let mut header = String::new();
            self.0.read_line(&mut header).map_err(io)?;
            let header = header.trim_end().to_ascii_lowercase();
            if header.is_empty() {
                break;
            }
            if let Some(len) = header.strip_prefix("content-length:") {
                body_len = len.trim().parse::<usize>().ok();
            }
        }
        let mut body = vec![0; body_len.ok_or("the answer has no length")?];
        self.0.read_exact(&mut body).map_err(io)?;
        match String::from_utf8_lossy(&body).contains(expected) {
            true => Ok(()),
            false => Err(format!("the body lacks {expected:?}")),
        }
    }
}
