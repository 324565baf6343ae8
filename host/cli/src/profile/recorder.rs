//! A recording that accompanies a machine in a thread of its own, from boot to end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use super::recording::{Recording, Wish};
use crate::failure::Failure;

/// A recording in the background.
#[derive(Debug)]
pub struct Recorder {
    thread: JoinHandle<Result<String, Failure>>,
    has_ended: Arc<AtomicBool>,
}

impl Recorder {
    /// Starts to record a machine whose kernel was told to by its command line.
    pub fn start(wish: Wish) -> Self {
        let has_ended = Arc::new(AtomicBool::new(false));
        let ended = has_ended.clone();
        let thread = thread::spawn(move || {
            let goes_on = || !ended.load(Ordering::Relaxed);
            let mut recording = Recording::join(wish, goes_on)?;
            recording.record(goes_on)?;
            recording.finish()
        });
        Self { thread, has_ended }
    }

    /// The machine has ended: writes the file, and says so.
    pub fn finish(self) {
        self.has_ended.store(true, Ordering::Relaxed);
        match self.thread.join() {
            Ok(Ok(sentence)) => eprintln!("sietch: {sentence}"),
            Ok(Err(failure)) => eprintln!("sietch: {failure}"),
            Err(_) => eprintln!("sietch: The profile is lost: its thread panicked."),
        }
    }
}
