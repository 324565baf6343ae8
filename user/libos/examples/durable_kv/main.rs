//! A key-value server whose answers can be relied on: `SET` is answered when a loss of power would leave it.
//!
//!     durable_kv 6379 /dev/vdb
//!     durable_kv 6379 /sys/bus/pci/devices/0000:00:03.1 vnic0 10.0.2.61/24
//!
//! It speaks Redis' protocol (`resp`: `SET`, `GET`, `DEL`, `DBSIZE`, `PING`) over the kernel's sockets (`sockets`), or on a link of its
//! own (`link`). Keys and values are in an ordered map on a log (`store`). All that clients ask for in one round goes to the
//! disk at once, and one flush answers them all: nobody waits for a timer, and who is alone waits for one write.

mod client;
mod link;
mod resp;
mod sockets;
mod store;

use std::env;
use std::error::Error;
use std::io::{self, Write};
use std::net::TcpListener;
use std::process::ExitCode;

use sietch_io::{Queue, QueueConfig};

use store::Store;

const BACKLOG: usize = 1024;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().collect();
    let words: Vec<&str> = arguments.iter().skip(1).map(String::as_str).collect();
    let (area, served) = match words.as_slice() {
        [port, area] => (area, serve(port, area)),
        [port, area, link, address] => (area, serve_on_link(port, area, link, address)),
        _ => {
            eprintln!("durable_kv PORT AREA [LINK ADDRESS/PREFIX]");
            return ExitCode::from(2);
        }
    };
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("durable_kv: {area}: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Until the log or the listener fails.
fn serve(port: &str, area: &str) -> Result<(), Box<dyn Error>> {
    let store = Store::open(area.as_ref())?;
    let listener = TcpListener::bind(("0.0.0.0", port.parse()?))?;
    tell(&store)?;
    Ok(sockets::serve(store, &listener)?)
}

/// Until the log fails or the link is gone.
fn serve_on_link(port: &str, area: &str, link: &str, address: &str) -> Result<(), Box<dyn Error>> {
    let store = Store::open(area.as_ref())?;
    let config = QueueConfig::new(link, address.parse()?);
    let mut queue = Queue::open(&config).map_err(|error| format!("{link}: {error}"))?;
    let listening = queue.listen(port.parse()?, BACKLOG);
    listening.map_err(|error| format!("{link}: {error:?}"))?;
    tell(&store)?;
    Ok(link::Server::new(store, queue).serve()?)
}

fn tell(store: &Store) -> io::Result<()> {
    println!("serving {} keys", store.len());
    io::stdout().flush()
}
