//! One queue as a file: what is known of it, and what is not about messages.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;

use cred::{Account, Charge, Counted, Resource};
use mach::mem::fallible;
use mach::sync::Spin;
use mm::io::Sink;
use sync::poll::{Events, Pollee};
use sync::{Error, Result, WaitQueue};
use task::current;

use super::limits::{Shape, cost};
use super::messages::Messages;
use super::notification::{NotifyMethod, Registration};
use vfs::attributes::Attributes;
use vfs::file::{File, OpenFile};
use vfs::{Change, FileType, Inode, Metadata, New, Timestamp};

/// What stat(2) says of a queue's size: what its text may take.
const TEXT_BYTES: u64 = 80;

/// What changes with each message; the rules are `transfer`'s.
#[derive(Default)]
pub(super) struct State {
    pub messages: Messages,
    /// Threads that wait for a message.
    pub receivers: usize,
    /// Messages that belong to one of these already.
    pub promised: usize,
    pub registration: Option<Registration>,
}

impl State {
    /// Messages that anybody may take.
    pub fn free(&self) -> usize {
        self.messages.len() - self.promised
    }
}

/// A queue.
pub struct Queue {
    device: u64,
    number: u64,
    attributes: Spin<Attributes>,
    /// Messages that it holds at most.
    pub messages_max: usize,
    /// Bytes of each at most.
    pub message_bytes_max: usize,
    pub(super) state: Spin<State>,
    pub(super) senders: WaitQueue,
    pub(super) receivers: WaitQueue,
    pub(super) pollee: Pollee,
    _charge: Charge,
}

/// What mq_getattr(3) tells.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Status {
    /// Messages that it holds at most.
    pub messages_max: usize,
    /// Bytes of each at most.
    pub message_bytes_max: usize,
    /// Messages that wait.
    pub messages: usize,
}

impl Queue {
    /// An empty one, that counts for the current user.
    ///
    /// Errors: `Invalid`, `TooManyFiles` (RLIMIT_MSGQUEUE), `OutOfMemory`.
    pub(super) fn new(device: u64, number: u64, new: &New<'_>, shape: Shape) -> Result<Arc<Self>> {
        let (messages_max, message_bytes_max) = shape.check()?;
        let me = current();
        let limit = me.process.limits.soft(Resource::MessageQueueBytes);
        let account = Account::of(me.credentials.with(|who| who.user.real))?;
        let charge = account
            .charge_many(
                Counted::MessageQueueBytes,
                cost(messages_max, message_bytes_max),
                limit,
            )
            .map_err(|_| Error::TooManyFiles)?;
        Ok(fallible::arc(Self {
            device,
            number,
            attributes: Spin::new(Attributes::new(new, Timestamp::now())),
            messages_max,
            message_bytes_max,
            state: Spin::default(),
            senders: WaitQueue::new(),
            receivers: WaitQueue::new(),
            pollee: Pollee::new(),
            _charge: charge,
        })?)
    }

    /// Its number.
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// What there is of it now.
    pub fn status(&self) -> Status {
        Status {
            messages_max: self.messages_max,
            message_bytes_max: self.message_bytes_max,
            messages: self.state.lock().free(),
        }
    }

    /// A message went through it, or its directory lost its name.
    pub(super) fn touch(&self, change: impl FnOnce(&mut Attributes)) {
        change(&mut self.attributes.lock());
    }

    /// Tells the current process by `method` of the next message that finds it empty.
    ///
    /// Errors: `Busy` if somebody is to be told already.
    pub fn register(&self, method: NotifyMethod) -> Result<()> {
        let registration = Registration::new(method);
        let mut state = self.state.lock();
        match state.registration {
            Some(_) => Err(Error::Busy),
            None => {
                state.registration = Some(registration);
                Ok(())
            }
        }
    }

    /// The current process is no longer to be told.
    pub fn unregister(&self) {
        let own = self.state.lock().registration.take_if(|one| one.is_own());
        if let Some(registration) = own {
            registration.end();
        }
    }

    fn text(&self) -> String {
        let state = self.state.lock();
        let (kind, signal) = state
            .registration
            .as_ref()
            .map_or((0, 0), Registration::numbers);
        let owner = state.registration.as_ref().map_or(0, |one| one.owner_id);
        let bytes = state.messages.bytes();
        drop(state);
        format!("QSIZE:{bytes:<10} NOTIFY:{kind:<5} SIGNO:{signal:<5} NOTIFY_PID:{owner:<6}\n")
    }
}

impl File for Queue {
    fn read_at(&self, _open: &OpenFile, offset: u64, to: &mut Sink<'_>) -> Result<usize> {
        let text = self.text();
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        to.put_whole(text.as_bytes().get(start..).unwrap_or(&[]))
    }

    fn is_seekable(&self) -> bool {
        true
    }

    fn write_at(
        &self,
        _open: &OpenFile,
        _offset: u64,
        _from: &mut mm::io::Source<'_>,
    ) -> Result<usize> {
        Err(Error::Invalid)
    }

    fn poll(&self) -> Events {
        let free = self.state.lock().free();
        let mut events = Events::empty();
        if free != 0 {
            events |= Events::READABLE;
        }
        if free < self.messages_max {
            events |= Events::WRITABLE;
        }
        events
    }

    fn pollee(&self) -> Option<&Pollee> {
        Some(&self.pollee)
    }

    /// Who closes any of its descriptors gives its registration up.
    fn flush(&self) {
        self.unregister();
    }

    fn metadata(&self) -> Result<Metadata> {
        let mut metadata = Metadata::new(self.device, self.number, FileType::Regular, 0);
        self.attributes.lock().tell(&mut metadata);
        metadata.size = TEXT_BYTES;
        Ok(metadata)
    }

    fn as_any(&self) -> &dyn core::any::Any {
        self
    }
}

impl Inode for Queue {
    fn kind(&self) -> FileType {
        FileType::Regular
    }

    fn change(&self, change: &Change) -> Result<()> {
        self.attributes.lock().change(change);
        Ok(())
    }

    fn truncate(&self, _size: u64) -> Result<()> {
        Ok(())
    }
}
