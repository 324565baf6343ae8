//! Ctrl-C while `sietch compose up` is in the foreground: the first asks all machines to end, each before those that it
//! depends on; one more ends them at once, as with docker.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::compose::Project;
use crate::failure::Failure;
use crate::state::{self, Folder, Settings};
use crate::wish::Wish;

/// How often the user wanted an end. Its default is nobody's, and signals have their usual effect.
#[derive(Debug, Default)]
pub struct Interrupt(Arc<AtomicUsize>);

impl Interrupt {
    /// Heeds signals from now on, for the machines of `project`.
    pub fn of(project: &Project) -> Result<Self, Failure> {
        let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(Failure::Lost)?;
        let count = Arc::new(AtomicUsize::new(0));
        let interrupt = Self(Arc::clone(&count));
        let machines = project.services.iter().map(|own| own.machine.clone());
        let machines: Vec<String> = machines.collect();
        thread::spawn(move || {
            for _ in signals.forever() {
                match count.fetch_add(1, Ordering::Relaxed) {
                    0 => note(),
                    _ => machines.iter().for_each(|machine| kill(machine)),
                }
            }
        });
        Ok(interrupt)
    }

    /// Whether the machines are to end.
    pub fn is_there(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }
}

fn note() {
    // The terminal shows `^C` without an end of line; one that is gone needs no word.
    let words = "\nsietch: The machines are asked to end; Ctrl-C once more ends them at once.";
    let _ = writeln!(io::stderr(), "{words}");
}

/// Ends a machine that runs, for good.
fn kill(machine: &str) {
    let folder = Folder::of(machine);
    if let Some(settings) = folder.settings().filter(Settings::is_served) {
        let wish = folder.note_wish_to_stop();
        state::kill(&settings);
        // One that is removed right now wants nothing.
        let _ = wish.and_then(Wish::settle);
    }
}
