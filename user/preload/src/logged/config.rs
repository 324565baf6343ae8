//! `SIETCH_LOG=PATTERN=AREA`: an absolute pattern, in which `*` and `?` stand for all but slashes, and the disk or area.

use std::env;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::sync::OnceLock;

use super::path::matches;

const VARIABLE: &str = "SIETCH_LOG";

/// Which files are on which blocks.
#[derive(Debug)]
pub struct Config {
    pub pattern: Vec<u8>,
    pub area: PathBuf,
}

static CONFIG: OnceLock<Option<Config>> = OnceLock::new();

/// `None` if nothing was asked for, or it cannot be understood, which is said once.
#[inline]
pub fn get() -> Option<&'static Config> {
    CONFIG.get_or_init(read).as_ref()
}

fn read() -> Option<Config> {
    let value = env::var_os(VARIABLE)?.into_vec();
    let parsed = parse(&value);
    if parsed.is_none() && !value.is_empty() {
        let value = String::from_utf8_lossy(&value);
        eprintln!(
            "libsietch: {VARIABLE}={value} is not /PATTERN=/AREA; the kernel's files are used."
        );
    }
    parsed
}

fn parse(value: &[u8]) -> Option<Config> {
    let at = value.iter().rposition(|byte| *byte == b'=')?;
    let (pattern, area) = (value.get(..at)?, value.get(at + 1..)?);
    let is_whole = pattern.starts_with(b"/") && area.starts_with(b"/");
    // A log on a file that is on the log would wait for itself.
    let is_sound = is_whole && !matches(pattern, area);
    is_sound.then(|| Config {
        pattern: pattern.to_vec(),
        area: PathBuf::from(OsString::from_vec(area.to_vec())),
    })
}
