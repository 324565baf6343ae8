//! Those who wait at a listener in the process that has forked us, or started us, and accepts none of them (`backlog`).
//!
//! They are ours when we look for peers, and not before: a child may open listeners and leave them to its own children, as nginx' new
//! master does, or close them. It is noticed where the queue begins to take new flows; a thread claims them then.

use std::ffi::c_int;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use posix::{Errno, Host, Open};

use super::children::Loan;
use super::{Hosting, Port, State, lock, now};
use crate::claiming;
use crate::keeper;

/// When those are claimed for whom there was no memory.
const AGAIN: Duration = Duration::from_millis(100);

/// Some can be claimed.
static CAN_CLAIM: AtomicBool = AtomicBool::new(false);

/// The queue takes new flows.
pub(super) fn claim_soon() {
    if CAN_CLAIM.swap(false, Relaxed) {
        keeper::spawn("sietch-backlog", || {
            while !lock().claim_backlogs() {
                thread::sleep(AGAIN);
            }
        });
    }
}

/// A listener's backlog of another process's.
pub struct Backlog {
    /// Whose numbers are the listener's until it is open.
    loan: Loan,
    /// Ours.
    listener: Option<Arc<Open>>,
}

impl Backlog {
    pub(super) fn new(loan: Loan) -> Self {
        let listener = None;
        Self { loan, listener }
    }

    /// Numbers of a listener that is not open yet.
    pub(super) fn numbers(&mut self) -> &mut Vec<u32> {
        &mut self.loan.numbers
    }

    fn numbers_now(&self, host: Option<&Host<Port>>) -> Vec<u32> {
        match (&self.listener, host) {
            (Some(listener), Some(host)) => host.numbers_of(listener),
            _ => self.loan.numbers.clone(),
        }
    }

    /// In a child, whose parent has the listener open.
    pub(super) fn close(&mut self, host: &Host<Port>) {
        self.loan.numbers = self.numbers_now(Some(host));
        self.listener = None;
    }

    /// Whether the listener has any, or may have.
    pub(super) fn has_numbers(&self) -> bool {
        self.listener.is_some() || !self.loan.numbers.is_empty()
    }

    /// Claims it; true if there is nothing more to claim.
    fn is_claimed(&self, (host, queue): (&mut Host<Port>, u16)) -> bool {
        let Some(listener) = &self.listener else {
            return false;
        };
        let from = (&*self.loan.channel, self.loan.place);
        !host.is_here(listener)
            || match claiming::claim_backlog((host, queue), from, listener, now()) {
                Ok(are_all) => are_all,
                Err(error) => matches!(error, Errno::NOT_CONNECTED | Errno::CONNECTION_RESET),
            }
    }

    /// See [`Channel::note_again`](crate::claims::Channel::note_again).
    pub(super) fn note_again(&self) {
        self.loan.channel.note_again();
    }
}

impl State {
    /// All of them, with the listeners' numbers.
    pub(super) fn numbered_backlogs(&self) -> Vec<(&Loan, Vec<u32>)> {
        let host = match &self.hosting {
            Hosting::Open(host) => Some(&**host),
            _ => None,
        };
        let all = self.backlogs.iter();
        all.map(|it| (&it.loan, it.numbers_now(host))).collect()
    }

    /// A number is closed that nobody has used yet.
    pub(super) fn renounce_backlog(&mut self, number: c_int) {
        for backlog in &mut self.backlogs {
            let numbers = backlog.numbers();
            numbers.retain(|other| other.cast_signed() != number);
        }
        self.backlogs.retain(Backlog::has_numbers);
    }

    /// Listeners have been opened.
    pub(super) fn open_backlogs(&mut self) {
        let Hosting::Open(host) = &self.hosting else {
            return;
        };
        for backlog in self.backlogs.iter_mut().filter(|it| it.listener.is_none()) {
            let numbers = backlog.loan.numbers.iter();
            let mut opens = numbers.filter_map(|number| host.socket(*number).ok());
            backlog.listener = opens.next();
        }
        let is_taking = !host.is_withdrawn();
        CAN_CLAIM.store(!self.backlogs.is_empty(), Relaxed);
        if is_taking {
            claim_soon();
        }
    }

    /// Whether nothing is left that can be claimed later, when there is memory for it.
    fn claim_backlogs(&mut self) -> bool {
        let (mut all, queue) = (std::mem::take(&mut self.backlogs), self.queue());
        let (Some(host), Some(queue)) = (self.host().filter(|host| host.is_up()), queue) else {
            return true;
        };
        all.retain(|it| !it.is_claimed((host, queue)));
        // Frames of theirs may have come first.
        host.turn(now());
        host.flush();
        self.backlogs = all;
        self.tell_news();
        self.backlogs.iter().all(|it| it.listener.is_none())
    }
}
