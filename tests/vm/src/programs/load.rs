//! What clients of the host ask of programs.

use std::net::{SocketAddr, UdpSocket};
use std::process::Command;
use std::time::Duration;

use crate::clients::together;
use crate::http::{self, Connections};

/// Clients at once.
const CLIENTS: usize = 8;
const DNS_QUERIES: u16 = 100;
/// A header with one question; the query's number goes before it.
const DNS_HEADER: &[u8] = &[1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
/// Of type A, of the internet.
const DNS_TYPE: &[u8] = &[0, 1, 0, 1];
const DNS_TRIES: usize = 5;

/// Answers of HTTP, on connections that stay and on fresh ones.
pub(super) fn http(address: SocketAddr, path: &str, expected: &str) -> Result<(), String> {
    http::load(address, path, expected, CLIENTS, 100, Connections::Kept)?;
    http::load(address, path, expected, CLIENTS, 15, Connections::Fresh)
}

/// Connections for one request each, of a server that keeps none.
pub(super) fn http_fresh(address: SocketAddr, expected: &str) -> Result<(), String> {
    http::load(address, "/", expected, CLIENTS, 60, Connections::Fresh)
}

/// Asks for the address of `www.sietch.test`, which is 192.0.2.7.
pub(super) fn dns(address: SocketAddr) -> Result<(), String> {
    let name = b"\x03www\x06sietch\x04test\x00";
    together(CLIENTS, |client| {
        let io = |error: std::io::Error| error.to_string();
        let socket = UdpSocket::bind(("0.0.0.0", 0)).map_err(io)?;
        let timeout = Some(Duration::from_secs(10));
        socket
            .connect(address)
            .and_then(|()| socket.set_read_timeout(timeout))
            .map_err(io)?;
        for query in 0..DNS_QUERIES {
            let number = (client as u16 * DNS_QUERIES + query).to_be_bytes();
            let ask = [&number, DNS_HEADER, name, DNS_TYPE].concat();
            let answer = ask_for(&socket, &ask).map_err(io)?;
            let is_right =
                answer.starts_with(&number) && answer.windows(4).any(|at| at == [192, 0, 2, 7]);
            if !is_right {
                return Err(format!("query {query} got {answer:?}"));
            }
        }
        Ok(())
    })
}

/// A datagram may be lost where many go at once; resolvers ask again.
fn ask_for(socket: &UdpSocket, ask: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut answer = vec![0; 512];
    let mut got = Ok(0);
    for _ in 0..DNS_TRIES {
        got = socket.send(ask).and_then(|_| socket.recv(&mut answer));
        if got.is_ok() {
            break;
        }
    }
    answer.truncate(got?);
    Ok(answer)
}

/// Runs a script of the host for each of several clients, with `$HOST`, `$PORT` and its number `$N`; it must end with 0.
pub(super) fn script(address: SocketAddr, clients: usize, script: &str) -> Result<(), String> {
    together(clients, |number| {
        let output = Command::new("bash")
            .args(["-ec", script])
            .env("HOST", address.ip().to_string())
            .env("PORT", address.port().to_string())
            .env("N", number.to_string())
            .env("HOME", super::state_folder())
            .output()
            .map_err(|error| format!("bash: {error}"))?;
        match output.status.success() {
            true => Ok(()),
            false => Err(format!(
                "client {number} failed: {}{}",
                String::from_utf8_lossy(&output.stdout),
                String::from_utf8_lossy(&output.stderr)
            )),
        }
    })
}
