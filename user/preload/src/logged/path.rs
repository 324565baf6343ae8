//! Paths, and whether they match a pattern.

use std::ffi::{CStr, OsStr, c_char, c_int};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::{env, fs};

use super::config;

/// The absolute path of a file on a log; `None` for all others. Symbolic links are not followed.
///
/// # Safety
/// **Caller**: a string.
#[inline]
pub unsafe fn logged(folder: c_int, path: *const c_char) -> Option<Vec<u8>> {
    let config = config::get()?;
    if path.is_null() {
        return None;
    }
    // SAFETY: **Caller**.
    let path = unsafe { CStr::from_ptr(path) }.to_bytes();
    let whole = absolute(folder, path)?;
    matches(&config.pattern, &whole).then_some(whole)
}

/// Without `.`, `..` and doubled slashes.
fn absolute(folder: c_int, path: &[u8]) -> Option<Vec<u8>> {
    let mut whole = match path.first()? {
        b'/' => Vec::new(),
        _ => folder_of(folder)?,
    };
    for name in path.split(|byte| *byte == b'/') {
        match name {
            b"" | b"." => {}
            b".." => whole.truncate(whole.iter().rposition(|byte| *byte == b'/').unwrap_or(0)),
            name => {
                whole.push(b'/');
                whole.extend(name);
            }
        }
    }
    Some(whole)
}

fn folder_of(folder: c_int) -> Option<Vec<u8>> {
    let folder = match folder {
        libc::AT_FDCWD => env::current_dir().ok()?,
        number => fs::read_link(format!("/proc/self/fd/{number}")).ok()?,
    };
    let mut bytes = folder.into_os_string().into_vec();
    if OsStr::from_bytes(&bytes) == "/" {
        bytes.clear();
    }
    Some(bytes)
}

/// Whether a path is one of a pattern, in which `*` and `?` stand for all but slashes.
pub fn matches(pattern: &[u8], path: &[u8]) -> bool {
    // Where to go on if what follows a star does not fit: one byte more is the star's.
    let (mut at, mut of, mut again) = (0, 0, None);
    loop {
        match (pattern.get(at), path.get(of)) {
            (Some(b'*'), _) => {
                again = Some((at + 1, of));
                at += 1;
                continue;
            }
            (Some(b'?'), Some(byte)) if *byte != b'/' => {}
            (Some(wanted), Some(byte)) if wanted == byte => {}
            (None, None) => return true,
            _ => {
                let Some((star, taken)) = again else {
                    return false;
                };
                if path.get(taken).is_none_or(|byte| *byte == b'/') {
                    return false;
                }
                again = Some((star, taken + 1));
                (at, of) = (star, taken + 1);
                continue;
            }
        }
        (at, of) = (at + 1, of + 1);
    }
}
