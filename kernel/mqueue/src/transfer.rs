//! Sending and receiving.
//!
//! Who waits for a message is counted under the queue's lock. A message that comes then is
//! *promised*: it stays in the queue, but only one who waits may take it, and who stops waiting
//! takes it all the same if there is one for each. So it never counts as waiting in the queue,
//! which was empty before and stays so.
//!
//! Invariant: `promised <= receivers`, and `promised <= messages`.

use sync::poll::Events;
use sync::{Error, Result, Wait};

use super::messages::Message;
use super::queue::{Queue, State};

/// What a message that was put in means for others.
enum Arrival {
    /// Somebody waits for it.
    Promised,
    /// It is the first.
    First,
    /// There are others.
    Behind,
}

impl State {
    fn arrive(&mut self) -> Arrival {
        if self.promised < self.receivers {
            self.promised += 1;
            return Arrival::Promised;
        }
        match self.free() {
            1 => Arrival::First,
            _ => Arrival::Behind,
        }
    }

    /// What one who waits gets.
    fn redeem(&mut self) -> Option<Message> {
        self.promised = self.promised.checked_sub(1)?;
        self.receivers -= 1;
        self.messages.take()
    }

    /// The same for one who waits no longer.
    fn stop_waiting(&mut self) -> Option<Message> {
        if self.promised == self.receivers {
            return self.redeem();
        }
        self.receivers -= 1;
        None
    }
}

impl Queue {
    /// Puts a message in, after waiting for room by the rules of `how`, if it may.
    ///
    /// Errors: `MessageTooLong`, `WouldBlock`, `TimedOut`, `Interrupted`, `OutOfMemory`.
    pub fn send(&self, message: Message, how: Option<Wait>) -> Result<()> {
        if message.bytes.len() > self.message_bytes_max {
            return Err(Error::MessageTooLong);
        }
        let mut message = Some(message);
        let mut attempt = || {
            let mut state = self.state.lock();
            if state.free() >= self.messages_max {
                return None;
            }
            let put = state.messages.put(message.take()?);
            Some(put.map(|()| state.arrive()))
        };
        let arrival = match how {
            Some(how) => self.senders.wait(how, attempt)?,
            None => attempt().ok_or(Error::WouldBlock)?,
        }?;
        self.touch(|attributes| attributes.touch(0));
        match arrival {
            Arrival::Promised => drop(self.receivers.wake_one()),
            Arrival::First => self.notify_first(),
            Arrival::Behind => self.pollee.notify_observers(Events::READABLE),
        }
        Ok(())
    }

    fn notify_first(&self) {
        self.pollee.notify_observers(Events::READABLE);
        let registration = self.state.lock().registration.take();
        if let Some(registration) = registration {
            registration.tell();
        }
    }

    /// Takes the first message out, after waiting for one by the rules of `how`, if it may.
    ///
    /// Errors: `WouldBlock`, `TimedOut`, `Interrupted`.
    pub fn receive(&self, how: Option<Wait>) -> Result<Message> {
        let message = match self.take_or_wait(how.is_some()) {
            Some(message) => message,
            None => self.wait_for_message(how.ok_or(Error::WouldBlock)?)?,
        };
        self.senders.wake_one();
        self.pollee.notify_observers(Events::WRITABLE);
        self.touch(|attributes| attributes.read());
        Ok(message)
    }

    /// A message that anybody may take; without one, the caller counts as waiting if it will.
    fn take_or_wait(&self, will_wait: bool) -> Option<Message> {
        let mut state = self.state.lock();
        if state.free() != 0 {
            return state.messages.take();
        }
        state.receivers += usize::from(will_wait);
        None
    }

    fn wait_for_message(&self, how: Wait) -> Result<Message> {
        let waited = self.receivers.wait(how, || self.state.lock().redeem());
        let Err(why) = waited else { return waited };
        let mut state = self.state.lock();
        let last = state.stop_waiting();
        let is_promised = state.promised != 0;
        drop(state);
        if is_promised {
            // The wake-up that was another's may have come to this thread.
            self.receivers.wake_one();
        }
        last.ok_or(why)
    }
}
