//! What happened to the user's machines, for `sietch events`: a line of JSON each, in one file.
//!
//! Whoever does something appends its line with one write, so that lines of several processes do not mix. A file that
//! has grown large becomes the former one, and that goes: what is kept is bounded.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::state;

/// As large a file grows.
const BYTES_MAX: u64 = 1 << 20;

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// When, in milliseconds since the epoch.
    pub at_ms: u64,
    /// To which machine.
    pub name: String,
    /// `start`, `die`, `restart`, `stop`, `kill`, `rename`, `destroy` or `health_status: healthy`.
    pub action: String,
    /// The exit status of one that died.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<u8>,
}

/// Where they are.
pub fn file() -> PathBuf {
    state::base().join("events.log")
}

/// Where those before are.
pub fn former_file() -> PathBuf {
    state::base().join("events.log.1")
}

/// Milliseconds since the epoch.
pub fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    u64::try_from(now.unwrap_or_default().as_millis()).unwrap_or(u64::MAX)
}

/// Notes that `action` happened to the machine `name`. That it cannot be written harms nobody.
pub fn note(name: &str, action: &str, exit_code: Option<u8>) {
    let event = Event {
        at_ms: now_ms(),
        name: name.into(),
        action: action.into(),
        exit_code,
    };
    let path = file();
    if fs::metadata(&path).is_ok_and(|file| file.len() > BYTES_MAX) {
        let _ = fs::rename(&path, former_file());
    }
    let mut line = serde_json::to_vec(&event).unwrap_or_default();
    line.push(b'\n');
    let file = OpenOptions::new().create(true).append(true).open(path);
    let _ = file.and_then(|mut file| file.write_all(&line));
}
