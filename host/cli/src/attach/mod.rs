//! `sietch attach`: the input and output of a machine's own program, while it runs.
//!
//! ```text
//! client.rs ── attach.sock ── viewers.rs (in the session) ── the program's streams
//! ```
//!
//! The session that keeps a machine has the program's streams. Who attaches sees from then on what the program writes, beside the
//! log, and may type if the program's input is open: in the foreground, or in the background with `-i`. The end of what one
//! types is not the end of the program's input, since the next one may type (docker's `StdinOnce` is false then, too).
//!
//! On the socket run the frames of `core/agent`, behind two bytes of the session's: whether the program has a terminal, and
//! whether its input is open. The last frame is the program's status.
//!
//! Who reads slowly lets the program wait, as with docker, as soon as [`QUEUE_BYTES_MAX`](viewers::QUEUE_BYTES_MAX) wait for him;
//! a machine that has ended waits for nobody.

pub mod client;
mod keys;
pub mod viewers;

use std::path::{Path, PathBuf};

/// Where the session of the machine in `folder` listens.
fn socket(folder: &Path) -> PathBuf {
    folder.join("attach.sock")
}
