//! A server on Tokio: messages that it reads into fresh memory.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::Test;
use crate::build;
use crate::clients::together;
use crate::guest::Setup;

/// The tests.
pub const TESTS: &[Test] = &[(
    "a server on Tokio sends large messages of many clients back whole",
    server,
)];

const CLIENTS: usize = 8;
const MESSAGES: usize = 6;
const MESSAGE_BYTES: usize = 1 << 20;

fn server(setup: &Setup) -> Result<(), String> {
    let program = build::tool("tokio-server", "tokio-server")?;
    let (guest, address) = setup.serve(8080, &[&program.to_string_lossy()])?;
    guest.expect_answer(address, &[0, 0, 0, 1, b'!'])?;
    together(CLIENTS, |number| client(address, number)).map_err(|why| guest.explain(&why))?;
    guest.stop().map(drop)
}

/// Sends messages, each of other bytes, and compares what comes back.
pub fn client(address: SocketAddr, number: usize) -> Result<(), String> {
    let io = |error: std::io::Error| error.to_string();
    let mut stream = TcpStream::connect(address).map_err(io)?;
    let patience = Some(Duration::from_secs(30));
    stream.set_read_timeout(patience).map_err(io)?;
    for message in 0..MESSAGES {
        let sent: Vec<u8> = (0..MESSAGE_BYTES)
            .map(|at| (at / 7 + at + number * 31 + message) as u8)
            .collect();
        let mut writer = stream.try_clone().map_err(io)?;
        let mut got = vec![0; MESSAGE_BYTES];
        std::thread::scope(|scope| {
            let sender = scope.spawn(|| {
                writer.write_all(&(MESSAGE_BYTES as u32).to_be_bytes())?;
                writer.write_all(&sent)
            });
            let read = stream.read_exact(&mut got);
            let wrote = sender
                .join()
                .unwrap_or_else(|_| Err(std::io::ErrorKind::Other.into()));
            read.and(wrote)
        })
        .map_err(io)?;
        if got != sent {
            return Err(format!(
                "message {message} of client {number} came back changed"
            ));
        }
    }
    Ok(())
}
