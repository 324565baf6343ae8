//! Looks for the keys of `--detach-keys` in what is typed.

use crate::flags::DetachKeys;

/// Looks for the keys in what is typed.
pub(super) struct Scanner {
    keys: DetachKeys,
    /// So many of them were typed, and are held back.
    seen: usize,
}

impl Scanner {
    pub(super) fn new(keys: DetachKeys) -> Self {
        Self { keys, seen: 0 }
    }

    /// What of `typed` goes on to the program; whether the keys were all typed.
    pub(super) fn look(&mut self, typed: &[u8]) -> (Vec<u8>, bool) {
        let keys = &self.keys.0;
        let mut passed = Vec::new();
        for &key in typed {
            if keys[self.seen] == key {
                self.seen += 1;
                if self.seen == keys.len() {
                    return (passed, true);
                }
                continue;
            }
            passed.extend_from_slice(&keys[..self.seen]);
            self.seen = usize::from(keys[0] == key && keys.len() > 1);
            if self.seen == 0 {
                passed.push(key);
            }
        }
        (passed, false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_the_whole_sequence_reaches_the_program() {
        let mut scanner = Scanner::new(DetachKeys::default());
        assert_eq!(scanner.look(b"ab\x10"), (b"ab".to_vec(), false));
        assert_eq!(scanner.look(b"c"), (b"\x10c".to_vec(), false));
        assert_eq!(scanner.look(b"\x10\x10\x11x"), (b"\x10".to_vec(), true));
    }
}
