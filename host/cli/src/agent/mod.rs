//! Commands in a machine that runs (`sietch exec`), from the client to the machine's port.
//!
//! ```text
//! client.rs ── agent.sock ── hub.rs (in the session) ── port of QEMU's ── kernel/agent
//! client.rs ── agent.sock ──┘
//! ```
//!
//! On each leg run the frames of `core/agent`. The session that serves the machine is the only one at the port; it
//! gives each client a channel. The session is to a machine what a shim is to a container: the machine
//! lives as long as it, `exec` comes and goes, and whoever finds the machine's folder finds its socket.
//!
//! Nobody who reads slowly stops another: credit, which only the client gives, bounds what waits for it in the
//! session ([`outbox`]), and the session always reads the port.

pub mod call;
pub mod client;
pub mod hub;
mod outbox;
pub mod probe;
pub mod renewal;

use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use agent::{Decoder, Frame};

/// Where the session of the machine in `folder` listens.
pub fn socket(folder: &Path) -> PathBuf {
    folder.join("agent.sock")
}

/// Reads the next frame; `None` at the end.
pub(crate) fn next_frame<'d>(
    stream: &mut impl Read,
    decoder: &'d mut Decoder,
) -> io::Result<Option<Frame<'d>>> {
    let malformed = |_| io::Error::from(ErrorKind::InvalidData);
    loop {
        match stream.read(decoder.wanted()) {
            Ok(0) => return Ok(None),
            Ok(count) => {
                if decoder.note(count).map_err(malformed)? {
                    return decoder.frame().map(Some).map_err(malformed);
                }
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
