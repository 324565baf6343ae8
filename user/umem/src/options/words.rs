//! The words of an environment variable: `name` or `name=value`, with commas between.

use core::ffi::CStr;
use core::str;

use crate::report::Line;

/// One word.
#[derive(Clone, Copy)]
pub struct Word<'a> {
    variable: &'static CStr,
    pub name: &'a [u8],
    /// What stands behind the `=`, if there is one.
    pub value: Option<&'a [u8]>,
}

impl Word<'_> {
    /// A number with K, M, G or T behind it. Anything else is reported and ignored.
    pub fn size(&self) -> Option<usize> {
        let size = self.value.and_then(parse_size);
        if size.is_none() {
            self.report(": not a number, ignored");
        }
        size
    }

    /// As [`Word::size`], or `default` without a value.
    pub fn size_or(&self, default: usize) -> Option<usize> {
        match self.value {
            Some(_) => self.size(),
            None => Some(default),
        }
    }

    /// What one of the names in `choices` stands for. Anything else is reported and ignored.
    pub fn choice<T: Copy>(&self, choices: &[(&str, T)]) -> Option<T> {
        let chosen = choices
            .iter()
            .find(|(name, _)| Some(name.as_bytes()) == self.value);
        if chosen.is_none() {
            self.report(": no such choice, ignored");
        }
        chosen.map(|&(_, choice)| choice)
    }

    /// Says something about the word on standard error.
    pub fn report(&self, what: &str) {
        self.line().text(what).text("\n").write();
    }

    /// As [`Word::report`], with a number at the end.
    pub fn report_number(&self, what: &str, number: usize) {
        self.line().text(what).number(number, 10).text("\n").write();
    }

    fn line(&self) -> Line {
        let line = Line::new()
            .text("umem: ")
            .bytes(self.variable.to_bytes())
            .text(": ")
            .bytes(self.name);
        match self.value {
            Some(value) => line.text("=").bytes(value),
            None => line,
        }
    }
}

/// Calls `found` with each word of a variable.
pub fn for_each(variable: &'static CStr, mut found: impl FnMut(Word<'_>)) {
    // SAFETY: the name is a C string.
    let text = unsafe { libc::getenv(variable.as_ptr()) };
    if text.is_null() {
        return;
    }
    // SAFETY: the environment holds C strings.
    let text = unsafe { CStr::from_ptr(text) };
    for word in text.to_bytes().split(|&byte| byte == b',') {
        let mut parts = word.splitn(2, |&byte| byte == b'=');
        found(Word {
            variable,
            name: parts.next().unwrap_or_default(),
            value: parts.next(),
        });
    }
}

fn parse_size(text: &[u8]) -> Option<usize> {
    let (digits, shift) = match text.split_last()? {
        (b'k' | b'K', digits) => (digits, 10),
        (b'm' | b'M', digits) => (digits, 20),
        (b'g' | b'G', digits) => (digits, 30),
        (b't' | b'T', digits) => (digits, 40),
        _ => (text, 0),
    };
    let number: usize = str::from_utf8(digits).ok()?.parse().ok()?;
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
