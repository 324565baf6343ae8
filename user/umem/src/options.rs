//! What `UMEM_OPTIONS` asks for. Unknown words are ignored, as libumem does.

use core::ffi::CStr;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

static PERTHREAD_CACHE: AtomicUsize = AtomicUsize::new(1 << 20);
static IS_READ: AtomicBool = AtomicBool::new(false);

/// Bytes that a thread may keep, 0 for none.
pub fn perthread_cache() -> usize {
    PERTHREAD_CACHE.load(Relaxed)
}

/// Reads the environment on the first call.
pub fn read() {
    if IS_READ.swap(true, Relaxed) {
        return;
    }
    // SAFETY: the name is a C string.
    let value = unsafe { libc::getenv(c"UMEM_OPTIONS".as_ptr()) };
    if value.is_null() {
        return;
    }
    // SAFETY: the environment holds C strings.
    let value = unsafe { CStr::from_ptr(value) };
    for word in value.to_bytes().split(|&byte| byte == b',') {
        if let Some(size) = word.strip_prefix(b"perthread_cache=").and_then(parse_size) {
            PERTHREAD_CACHE.store(size, Relaxed);
        } else if word == b"nomagazines" {
            PERTHREAD_CACHE.store(0, Relaxed);
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
