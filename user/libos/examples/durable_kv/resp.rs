//! Requests of Redis' protocol: an array of strings.

use std::io::{self, ErrorKind};

/// Words of a request.
const WORDS_MAX: usize = 64;
const WORD_BYTES_MAX: usize = 1 << 20;

/// What a client asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Command<'a> {
    Set(&'a [u8], &'a [u8]),
    Get(&'a [u8]),
    Forget(&'a [u8]),
    Count,
    Ping,
    Other,
}

impl<'a> Command<'a> {
    pub fn of(words: &[&'a [u8]]) -> Self {
        let Some((name, rest)) = words.split_first() else {
            return Self::Other;
        };
        let is = |word: &[u8]| name.eq_ignore_ascii_case(word);
        match rest {
            [key, value] if is(b"SET") => Self::Set(key, value),
            [key] if is(b"GET") => Self::Get(key),
            [key] if is(b"DEL") => Self::Forget(key),
            [] if is(b"DBSIZE") => Self::Count,
            [] if is(b"PING") => Self::Ping,
            _ => Self::Other,
        }
    }
}

/// Words, and the bytes of all of them.
pub type Request<'a> = (Vec<&'a [u8]>, usize);

/// The words of the request at the beginning, and its bytes; nothing if it is not whole.
///
/// Errors: it is none.
pub fn request(bytes: &[u8]) -> io::Result<Option<Request<'_>>> {
    let Some((count, mut at)) = header(bytes, b'*', WORDS_MAX)? else {
        return Ok(None);
    };
    let mut words = Vec::with_capacity(count);
    for _ in 0..count {
        let Some((len, head)) = header(&bytes[at..], b'$', WORD_BYTES_MAX)? else {
            return Ok(None);
        };
        let Some(word) = bytes.get(at + head..at + head + len + 2) else {
            return Ok(None);
        };
        words.push(&word[..len]);
        at += head + len + 2;
    }
    Ok(Some((words, at)))
}

/// A number on a line of its own, and the line's bytes.
fn header(bytes: &[u8], kind: u8, most: usize) -> io::Result<Option<(usize, usize)>> {
    let line = &bytes[..bytes.len().min(24)];
    let Some(end) = line.windows(2).position(|pair| pair == b"\r\n") else {
        return match line.len() < 24 {
            true => Ok(None),
            false => Err(ErrorKind::InvalidData.into()),
        };
    };
    let number = line[..end].strip_prefix(&[kind]);
    let number = number.and_then(|text| str::from_utf8(text).ok()?.parse().ok());
    let number = number.filter(|number| *number <= most);
    let number = number.ok_or(ErrorKind::InvalidData)?;
    Ok(Some((number, end + 2)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_read_when_it_is_whole() {
        let bytes = b"*3\r\n$3\r\nset\r\n$1\r\na\r\n$2\r\nbb\r\n*1";
        for end in 0..bytes.len() - 2 {
            assert_eq!(request(&bytes[..end]).unwrap(), None);
        }
        let (words, len) = request(bytes).unwrap().unwrap();
        assert_eq!(len, bytes.len() - 2);
        assert_eq!(Command::of(&words), Command::Set(b"a", b"bb"));
    }

    #[test]
    fn nonsense_is_refused() {
        for bytes in [&b"GET a\r\n"[..], b"*99999\r\n", b"*-1\r\n", &[b'*'; 30]] {
            assert!(request(bytes).is_err());
        }
    }
}
