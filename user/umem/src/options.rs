//! What `UMEM_OPTIONS`, `UMEM_DEBUG` and `UMEM_LOGGING` ask for. Unknown words are ignored, as libumem does.

use core::ffi::CStr;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

static PERTHREAD_CACHE: AtomicUsize = AtomicUsize::new(1 << 20);
static IS_READ: AtomicBool = AtomicBool::new(false);
static FRAMES: AtomicUsize = AtomicUsize::new(0);
static CONTENTS: AtomicUsize = AtomicUsize::new(0);
static GUARDS: AtomicBool = AtomicBool::new(false);
static TRANSACTION_LOG: AtomicUsize = AtomicUsize::new(0);

/// Frames of a stack and bytes of an allocation that are kept and filled by default.
const DEFAULT_FRAMES: usize = 15;
const DEFAULT_CONTENTS: usize = 256;
/// Bytes of the transaction log by default, and at most.
const DEFAULT_LOG: usize = 64 << 10;
const LARGEST_LOG: usize = 4 << 20;

/// What `UMEM_DEBUG` asks for.
#[derive(Clone, Copy)]
pub struct Debug {
    /// Frames that are noted of each stack; 0 without `audit`.
    pub frames: usize,
    /// Bytes that are filled and compared; 0 without `contents`.
    pub contents_bytes: usize,
    /// Whether red zones are looked at.
    pub guards: bool,
}

impl Debug {
    /// Whether anything is asked for.
    pub fn is_on(self) -> bool {
        self.frames > 0 || self.contents_bytes > 0 || self.guards
    }
}

/// What `UMEM_DEBUG` asks for.
pub fn debug() -> Debug {
    Debug {
        frames: FRAMES.load(Relaxed),
        contents_bytes: CONTENTS.load(Relaxed),
        guards: GUARDS.load(Relaxed),
    }
}

/// Bytes that a thread may keep, 0 for none.
pub fn perthread_cache() -> usize {
    PERTHREAD_CACHE.load(Relaxed)
}

/// Bytes of the transaction log, 0 for none.
pub fn transaction_log() -> usize {
    TRANSACTION_LOG.load(Relaxed)
}

/// Reads the environment on the first call.
pub fn read() {
    if IS_READ.swap(true, Relaxed) {
        return;
    }
    for_each_word(c"UMEM_OPTIONS", |name, value| match (name, value) {
        (b"perthread_cache", Some(value)) => {
            if let Some(size) = parse_size(value) {
                PERTHREAD_CACHE.store(size, Relaxed);
            }
        }
        (b"nomagazines", _) => PERTHREAD_CACHE.store(0, Relaxed),
        _ => {}
    });
    for_each_word(c"UMEM_DEBUG", |name, value| {
        let number = |default| value.map_or(Some(default), parse_size);
        let (frames, contents) = match name {
            b"default" => (Some(DEFAULT_FRAMES), Some(DEFAULT_CONTENTS)),
            b"audit" => (number(DEFAULT_FRAMES), None),
            b"contents" => (None, number(DEFAULT_CONTENTS)),
            _ => (None, None),
        };
        if let Some(frames) = frames {
            FRAMES.store(frames, Relaxed);
        }
        if let Some(contents) = contents {
            CONTENTS.store(contents, Relaxed);
        }
        if matches!(name, b"default" | b"guards") {
            GUARDS.store(true, Relaxed);
        }
    });
    for_each_word(c"UMEM_LOGGING", |name, value| {
        let size = value.map_or(Some(DEFAULT_LOG), parse_size);
        if let (b"transaction", Some(size)) = (name, size) {
            TRANSACTION_LOG.store(size.min(LARGEST_LOG), Relaxed);
        }
    });
    if debug().is_on() {
        PERTHREAD_CACHE.store(0, Relaxed);
    }
}

/// Calls `found` with each word of a variable, and what stands behind its `=`.
fn for_each_word(variable: &CStr, mut found: impl FnMut(&[u8], Option<&[u8]>)) {
    // SAFETY: the name is a C string.
    let value = unsafe { libc::getenv(variable.as_ptr()) };
    if value.is_null() {
        return;
    }
    // SAFETY: the environment holds C strings.
    let value = unsafe { CStr::from_ptr(value) };
    for word in value.to_bytes().split(|&byte| byte == b',') {
        match word.iter().position(|&byte| byte == b'=') {
            Some(at) => found(&word[..at], Some(&word[at + 1..])),
            None => found(word, None),
        }
    }
}

/// A number with K, M, G or T behind it.
fn parse_size(text: &[u8]) -> Option<usize> {
    let (digits, shift) = match text.split_last()? {
        (b'k' | b'K', digits) => (digits, 10),
        (b'm' | b'M', digits) => (digits, 20),
        (b'g' | b'G', digits) => (digits, 30),
        (b't' | b'T', digits) => (digits, 40),
        _ => (text, 0),
    };
    let number: usize = core::str::from_utf8(digits).ok()?.parse().ok()?;
    number.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::parse_size;

    #[test]
    fn sizes_have_suffixes() {
        assert_eq!(parse_size(b"64M"), Some(64 << 20));
        assert_eq!(parse_size(b"0"), Some(0));
        assert_eq!(parse_size(b"M"), None);
        assert_eq!(parse_size(b"99999999999T"), None);
    }
}
