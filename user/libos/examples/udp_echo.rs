//! Sends every datagram back to where it came from, at port 7 (RFC 862), over a link of its own:
//!
//!     udp_echo vnic0 10.0.2.61/24

use std::env;
use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;

use sietch_io::{Event, Queue, QueueConfig};

const ECHO: u16 = 7;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().collect();
    let [_, link, address] = arguments.as_slice() else {
        eprintln!("udp_echo LINK ADDRESS/PREFIX");
        return ExitCode::from(2);
    };
    match serve(link, address) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("udp_echo: {link}: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Until the link is gone.
fn serve(link: &str, address: &str) -> Result<(), Box<dyn Error>> {
    let mut queue = Queue::open(&QueueConfig::new(link, address.parse()?))?;
    queue.bind(ECHO)?;
    println!("serving");
    io::stdout().flush()?;
    loop {
        queue.poll(None)?;
        while let Some(event) = queue.receive() {
            if let Event::Datagram { socket, from, data } = event {
                // One that cannot be sent is lost, as datagrams are.
                queue.send_to(socket, from, data).ok();
            }
        }
    }
}
