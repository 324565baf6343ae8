//! A blob on its way: where a connection ends too early, the rest is asked for.
//!
//! Which bytes come is nobody's promise: whoever reads compares the digest of all of them. So a registry that knows no
//! ranges (RFC 9110, 14) is as good, as what came before is passed over. There is an end to it: [`TRIES`] in a row that
//! bring less than [`PROGRESS_BYTES`] together.

use std::io::{self, Read};
use std::thread;

use ureq::http::{Response, StatusCode, header};

use super::Registry;
use super::retry::{TRIES, pause_after};
use crate::document::Descriptor;
use crate::error::Result;

/// A connection that brought so much was worth its trouble.
const PROGRESS_BYTES: u64 = 1 << 20;

/// Its bytes, of which more may come than there should be.
pub(super) struct Blob<'a> {
    registry: &'a mut Registry,
    /// Where it is, behind the repository's URL.
    rest: String,
    whole_bytes: u64,
    done_bytes: u64,
    /// The connection that it comes by.
    source: Box<dyn Read>,
    failures: u32,
    /// How much there was at the first of them.
    failed_at: u64,
}

impl<'a> Blob<'a> {
    /// Of `blob`, whose first bytes `answer` brings.
    pub(super) fn new(
        registry: &'a mut Registry,
        rest: String,
        blob: &Descriptor,
        answer: Response<ureq::Body>,
    ) -> Self {
        Self {
            registry,
            rest,
            whole_bytes: blob.size,
            done_bytes: 0,
            source: Box::new(answer.into_body().into_reader()),
            failures: 0,
            failed_at: 0,
        }
    }

    /// Asks for the rest, unless that was in vain too often.
    fn go_on(&mut self, reason: String) -> io::Result<()> {
        if self.done_bytes >= self.failed_at + PROGRESS_BYTES {
            self.failures = 0;
            self.failed_at = self.done_bytes;
        }
        self.failures += 1;
        if self.failures >= TRIES {
            let (done, whole) = (self.done_bytes, self.whole_bytes);
            let what = format!("{}, after {done} of {whole} bytes", self.rest);
            return Err(io::Error::other(self.registry.interrupted(what, reason)));
        }
        thread::sleep(pause_after(self.failures));
        self.source = match self.ask() {
            Ok(source) => source,
            // The next read finds that nothing comes.
            Err(error) if error.is_passing() => Box::new(io::empty()),
            Err(error) => return Err(io::Error::other(error)),
        };
        Ok(())
    }

    fn ask(&mut self) -> Result<Box<dyn Read>> {
        let Some(answer) = self.registry.ask(&self.rest, self.done_bytes)? else {
            return Err(self.registry.interrupted(&self.rest, "it is there no more"));
        };
        let is_rest = answer.status() == StatusCode::PARTIAL_CONTENT;
        if is_rest && start_of(&answer) != Some(self.done_bytes) {
            return Err(self
                .registry
                .interrupted(&self.rest, "its rest begins elsewhere"));
        }
        let mut source = answer.into_body().into_reader();
        if !is_rest {
            let passed = io::copy(&mut source.by_ref().take(self.done_bytes), &mut io::sink());
            passed.map_err(|error| self.registry.interrupted(&self.rest, error))?;
        }
        Ok(Box::new(source))
    }
}

impl Read for Blob<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            let is_whole = self.done_bytes >= self.whole_bytes || into.is_empty();
            match self.source.read(into) {
                Ok(0) if !is_whole => self.go_on("nothing more comes".into())?,
                Ok(count) => {
                    self.done_bytes += count as u64;
                    return Ok(count);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // How the connection ends does not matter then.
                Err(_) if is_whole => return Ok(0),
                Err(error) => self.go_on(error.to_string())?,
            }
        }
    }
}

/// The first byte that a part of something has (`Content-Range: bytes 5-9/10`).
fn start_of(answer: &Response<ureq::Body>) -> Option<u64> {
    let range = answer.headers().get(header::CONTENT_RANGE)?.to_str().ok()?;
    let (start, _) = range.strip_prefix("bytes ")?.split_once('-')?;
    start.parse().ok()
}
