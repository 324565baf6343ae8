//! What a stream has said so far, collected by a thread, so that a test can wait for
//! a word of it.

use std::io::Read;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

/// A stream's bytes, growing until it ends.
#[derive(Clone, Debug, Default)]
pub struct Transcript(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    heard: Mutex<Heard>,
    more: Condvar,
}

#[derive(Debug, Default)]
struct Heard {
    bytes: Vec<u8>,
    ended: bool,
}

impl Transcript {
    /// Collects `stream` in a thread of its own until its end.
    pub fn of(mut stream: impl Read + Send + 'static) -> Self {
        let transcript = Self::default();
        let writer = transcript.clone();
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(len @ 1..) = stream.read(&mut buffer) {
                writer.lock().bytes.extend_from_slice(&buffer[..len]);
                writer.0.more.notify_all();
            }
            writer.lock().ended = true;
            writer.0.more.notify_all();
        });
        transcript
    }

    /// Everything heard so far.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.lock().bytes).into_owned()
    }

    /// Waits until `needle` was said. False if the stream ends or time is up first.
    pub fn wait_for(&self, needle: &str, patience: Duration) -> bool {
        let deadline = Instant::now() + patience;
        let mut heard = self.lock();
        let mut searched = 0;
        loop {
            let from = usize::saturating_sub(searched, needle.len());
            if contains(&heard.bytes[from..], needle.as_bytes()) {
                return true;
            }
            searched = heard.bytes.len();
            let left = deadline.saturating_duration_since(Instant::now());
            if heard.ended || left.is_zero() {
                return false;
            }
            let woken = self.0.more.wait_timeout(heard, left);
            heard = woken.unwrap_or_else(|poisoned| poisoned.into_inner()).0;
        }
    }

    /// Waits until the stream ends. False if time is up first.
    pub fn wait_for_end(&self, patience: Duration) -> bool {
        let deadline = Instant::now() + patience;
        let mut heard = self.lock();
        while !heard.ended {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let woken = self.0.more.wait_timeout(heard, left);
            heard = woken.unwrap_or_else(|poisoned| poisoned.into_inner()).0;
        }
        true
    }

    fn lock(&self) -> MutexGuard<'_, Heard> {
        self.0
            .heard
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

fn contains(haystack: &[u8], needle: &[u8]) -> bool {
    haystack
        .windows(needle.len().max(1))
        .any(|window| window == needle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_found_when_it_was_said_and_not_waited_for_after_the_end() {
        let transcript = Transcript::of(&b"Ready to accept connections"[..]);
        assert!(transcript.wait_for("accept", Duration::from_secs(10)));
        assert!(!transcript.wait_for("refuse", Duration::from_secs(10)));
        assert_eq!(transcript.text(), "Ready to accept connections");
    }
}
