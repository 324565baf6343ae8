//! Values by their keys, and memcached's commands for them: `get` of several keys, `set`, `delete`,
//! `version`, `quit`.
//!
//! Values do not expire, and when there are too many bytes of them a `set` is refused: this is an
//! example of a server, not of a cache.

use std::collections::HashMap;

/// Bytes of the longest key.
const KEY_BYTES_MAX: usize = 250;
/// Bytes of the longest value.
const VALUE_BYTES_MAX: usize = 1 << 20;
/// Bytes of a line of a command.
const LINE_BYTES_MAX: usize = 2048;
/// Who asks for more at once is not answered.
const ANSWER_BYTES_MAX: usize = 2 << 20;
/// Bytes of all keys and values.
const BYTES_MAX: usize = 64 << 20;

/// What became of the beginning of some bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// They were a request of so many bytes, which is answered.
    Done {
        /// How many.
        bytes: usize,
    },
    /// A request is not whole.
    Partial,
    /// The peer leaves, or does not speak the protocol.
    Quit,
}

struct Value {
    flags: u32,
    bytes: Vec<u8>,
}

/// See the module.
#[derive(Default)]
pub struct Store {
    values: HashMap<Vec<u8>, Value>,
    bytes: usize,
}

impl Store {
    /// Executes the first request in `input`, and appends its answer.
    pub fn execute(&mut self, input: &[u8], answer: &mut Vec<u8>) -> Outcome {
        let Some(end) = input.windows(2).position(|pair| pair == b"\r\n") else {
            return match input.len() > LINE_BYTES_MAX {
                true => Outcome::Quit,
                false => Outcome::Partial,
            };
        };
        let (line, rest) = (&input[..end], &input[end + 2..]);
        let mut words = line
            .split(|byte| *byte == b' ')
            .filter(|word| !word.is_empty());
        let done = Outcome::Done { bytes: end + 2 };
        match words.next() {
            Some(b"get" | b"gets") => {
                for key in words {
                    if answer.len() > ANSWER_BYTES_MAX {
                        return Outcome::Quit;
                    }
                    self.get(key, answer);
                }
                answer.extend(b"END\r\n");
                done
            }
            Some(b"set") => {
                let words: Vec<&[u8]> = words.collect();
                self.set(&words, rest, end + 2, answer)
            }
            Some(b"delete") => {
                let is_known = words.next().is_some_and(|key| self.remove(key));
                let said: &[u8] = if is_known {
                    b"DELETED\r\n"
                } else {
                    b"NOT_FOUND\r\n"
                };
                answer.extend(said);
                done
            }
            Some(b"version") => {
                answer.extend(b"VERSION sietch-io\r\n");
                done
            }
            Some(b"quit") => Outcome::Quit,
            _ => {
                answer.extend(b"ERROR\r\n");
                done
            }
        }
    }

    fn get(&self, key: &[u8], answer: &mut Vec<u8>) {
        if let Some(value) = self.values.get(key) {
            answer.extend(b"VALUE ");
            answer.extend(key);
            answer.extend(format!(" {} {}\r\n", value.flags, value.bytes.len()).bytes());
            answer.extend(&value.bytes);
            answer.extend(b"\r\n");
        }
    }

    /// `set KEY FLAGS EXPIRY BYTES [noreply]`, and the bytes on lines of their own.
    fn set(
        &mut self,
        words: &[&[u8]],
        rest: &[u8],
        line_bytes: usize,
        answer: &mut Vec<u8>,
    ) -> Outcome {
        let (key, flags, len) = match words {
            [key, flags, _expiry, len, ..] => (*key, number(flags), number(len)),
            _ => return Outcome::Quit,
        };
        let (Some(flags), Some(len)) = (flags, len.map(|len| len as usize)) else {
            return Outcome::Quit;
        };
        if key.len() > KEY_BYTES_MAX || len > VALUE_BYTES_MAX {
            return Outcome::Quit;
        }
        let Some((value, b"\r\n")) = rest.get(..len + 2).map(|data| data.split_at(len)) else {
            return match rest.len() < len + 2 {
                true => Outcome::Partial,
                false => Outcome::Quit,
            };
        };
        let is_quiet = words.get(4) == Some(&&b"noreply"[..]);
        let said = self.put(key, flags, value);
        if !is_quiet {
            answer.extend(said);
        }
        let bytes = line_bytes + len + 2;
        Outcome::Done { bytes }
    }

    fn put(&mut self, key: &[u8], flags: u32, value: &[u8]) -> &'static [u8] {
        self.remove(key);
        let bytes = key.len() + value.len();
        if self.bytes + bytes > BYTES_MAX {
            return b"SERVER_ERROR out of memory storing object\r\n";
        }
        self.bytes += bytes;
        let bytes = value.to_vec();
        self.values.insert(key.to_vec(), Value { flags, bytes });
        b"STORED\r\n"
    }

    fn remove(&mut self, key: &[u8]) -> bool {
        let old = self.values.remove(key);
        self.bytes -= old.as_ref().map_or(0, |old| key.len() + old.bytes.len());
        old.is_some()
    }
}

fn number(word: &[u8]) -> Option<u32> {
    str::from_utf8(word).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(store: &mut Store, input: &str) -> (Outcome, String) {
        let mut answer = Vec::new();
        let outcome = store.execute(input.as_bytes(), &mut answer);
        (outcome, String::from_utf8(answer).unwrap())
    }

    #[test]
    fn what_was_set_is_got_until_it_is_deleted() {
        let mut store = Store::default();
        let set = "set a 7 0 5\r\nhello\r\n";
        let done = |input: &str| Outcome::Done { bytes: input.len() };
        assert_eq!(said(&mut store, set), (done(set), "STORED\r\n".into()));
        let got = said(&mut store, "get b a\r\n").1;
        assert_eq!(got, "VALUE a 7 5\r\nhello\r\nEND\r\n");
        assert_eq!(said(&mut store, "delete a\r\n").1, "DELETED\r\n");
        assert_eq!(said(&mut store, "get a\r\n").1, "END\r\n");
        assert_eq!(store.bytes, 0);
    }

    #[test]
    fn a_request_in_pieces_waits_for_its_end() {
        let mut store = Store::default();
        let set = "set a 0 0 5\r\nhello\r\n";
        for end in 0..set.len() {
            assert_eq!(said(&mut store, &set[..end]).0, Outcome::Partial, "{end}");
        }
    }

    #[test]
    fn nonsense_ends_the_connection_or_is_an_error() {
        let mut store = Store::default();
        let long = "x".repeat(3000);
        for (input, outcome) in [
            ("set a 0 0 99999999\r\n", Outcome::Quit),
            ("set a 0 0 -1\r\n", Outcome::Quit),
            ("set a\r\n", Outcome::Quit),
            ("set a 0 0 1\r\nhello\r\n", Outcome::Quit),
            (&long, Outcome::Quit),
            ("quit\r\n", Outcome::Quit),
        ] {
            assert_eq!(said(&mut store, input).0, outcome, "{input}");
        }
        assert_eq!(said(&mut store, "hello\r\n").1, "ERROR\r\n");
    }
}
