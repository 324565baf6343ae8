//! memcached with four threads, under several clients.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::Test;
use crate::clients::together;
use crate::guest::Setup;

/// The tests.
pub const TESTS: &[Test] = &[(
    "memcached with four threads keeps the values of many clients",
    many_clients,
)];

const CLIENTS: usize = 16;
const ROUNDS: usize = 200;

fn many_clients(setup: &Setup) -> Result<(), String> {
    let (guest, address) = setup.serve(11211, &["memcached", "-t", "4", "-u", "nobody"])?;
    guest.expect_answer(address, b"version\r\n")?;
    together(CLIENTS, |number| client(address, number)).map_err(|why| guest.explain(&why))?;
    guest.stop().map(drop)
}

/// Stores values of growing size and reads each back.
pub fn client(address: SocketAddr, number: usize) -> Result<(), String> {
    let io = |error: std::io::Error| error.to_string();
    let stream = TcpStream::connect(address).map_err(io)?;
    stream
        .set_read_timeout(Some(Duration::from_secs(30)))
        .map_err(io)?;
    let mut stream = BufReader::new(stream);
    for round in 0..ROUNDS {
        let key = format!("key-{number}-{round}");
        let value = format!("{number}.{round}.").repeat(1 + round * 5);
        let request = format!("set {key} 0 0 {}\r\n{value}\r\nget {key}\r\n", value.len());
        stream.get_mut().write_all(request.as_bytes()).map_err(io)?;
        let expected = format!(
            "STORED\r\nVALUE {key} 0 {}\r\n{value}\r\nEND\r\n",
            value.len()
        );
        let mut answer = vec![0; expected.len()];
        stream.read_exact(&mut answer).map_err(io)?;
        if answer != expected.as_bytes() {
            return Err(format!("answers {key} wrongly"));
        }
    }
    stream.get_mut().write_all(b"quit\r\n").map_err(io)?;
    let mut rest = String::new();
    stream.read_line(&mut rest).map_err(io)?;
    Ok(())
}
