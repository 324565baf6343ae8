//! Waiting for several files: poll(2) and select(2).

use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, Ordering};

use sched::{Entity, current_counted, resched_point};
use sync::poll::{Events, Observer, Pollee, Sharing};
use sync::{Error, Result, Wait};

use super::OpenFile;

/// One file of poll(2) or select(2).
pub struct Watched {
    /// The file; `None` where the number names none.
    pub open: Option<Arc<OpenFile>>,
    /// What is asked for.
    pub interest: Events,
    /// What is true: the answer.
    pub ready: Events,
}

impl Watched {
    /// Asks the file; whether there is something to report.
    fn check(&mut self) -> bool {
        if let Some(open) = &self.open {
            let interest = self.interest | Events::ALWAYS;
            self.ready = open.file.poll_for(interest) & interest;
        }
        !self.ready.is_empty()
    }

    fn pollee(&self) -> Option<&Pollee> {
        self.open.as_ref().and_then(|open| open.file.pollee())
    }
}

/// A thread that waits for several files.
struct Sleeper {
    thread: Arc<Entity>,
    is_told: AtomicBool,
}

impl Observer for Sleeper {
    fn notify(self: Arc<Self>, _events: Events) -> bool {
        if !self.is_told.swap(true, Ordering::SeqCst) {
            sched::wake(&self.thread);
        }
        true
    }
}

/// Waits until one of `files` is ready; returns how many are, 0 at the deadline.
///
/// Nothing is registered if something is ready at once, which is the common case.
pub fn wait_for_any(files: &mut [Watched], how: Wait) -> Result<usize> {
    let count = check_all(files);
    if count != 0 || how.deadline <= mach::time::now() {
        return Ok(count);
    }
    let sleeper = Arc::new(Sleeper {
        thread: current_counted(),
        is_told: AtomicBool::new(false),
    });
    let as_observer: Arc<dyn Observer> = sleeper.clone();
    let observer = Arc::downgrade(&as_observer);
    for file in files.iter() {
        if let Some(pollee) = file.pollee() {
            pollee.observe(observer.clone(), file.interest, Sharing::Shared);
        }
        resched_point();
    }
    let outcome = sleep(files, how, &sleeper.is_told);
    for pollee in files.iter().filter_map(Watched::pollee) {
        pollee.forget(&observer);
        resched_point();
    }
    outcome
}

fn sleep(files: &mut [Watched], how: Wait, is_told: &AtomicBool) -> Result<usize> {
    loop {
        is_told.store(false, Ordering::SeqCst);
        let count = check_all(files);
        if count != 0 {
            return Ok(count);
        }
        match how.park_unless(|| is_told.load(Ordering::SeqCst)) {
            Err(Error::TimedOut) => return Ok(check_all(files)),
            outcome => outcome?,
        }
    }
}

fn check_all(files: &mut [Watched]) -> usize {
    let check = |file: &mut Watched| {
        resched_point();
        usize::from(file.check())
    };
    files.iter_mut().map(check).sum()
}
