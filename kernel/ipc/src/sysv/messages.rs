//! Queues of messages with types (msgget(2), msgop(2)).

use alloc::sync::Arc;

use cred::Capability;
use mach::sync::Spin;
use sync::{Error, Restart, Result, Wait, WaitQueue};
use sysv::{GetRequest, Message, Pick, Queue, QueueError, Registry};
use task::{Pid, current};

use super::{
    Common, Look, Settings, as_caller, check_mode, check_owner, look_at, now_seconds, refused,
};

/// Queues at most (MSGMNI).
pub const QUEUES_MAX: usize = 32_000;
/// Bytes of a message at most (MSGMAX).
pub const MESSAGE_BYTES_MAX: usize = 8192;
/// Bytes that wait in a new queue at most (MSGMNB).
pub const QUEUE_BYTES_MAX: usize = 16_384;

struct State {
    queue: Queue,
    facts: QueueTimes,
    is_removed: bool,
}

/// When and by whom a queue was used, in seconds since 1970 or 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct QueueTimes {
    /// The last message came.
    pub sent: i64,
    /// The last message went.
    pub received: i64,
    /// It was made or changed.
    pub changed: i64,
    /// Who sent last.
    pub sender: Pid,
    /// Who received last.
    pub receiver: Pid,
}

struct MessageQueue {
    state: Spin<State>,
    senders: WaitQueue,
    receivers: WaitQueue,
}

/// System V's numbers are the machine's: who knows one has the queue.
static QUEUES: Spin<Registry<Arc<MessageQueue>>> = Spin::new(Registry::new(QUEUES_MAX));

/// What tools see of a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Facts {
    /// What all kinds have.
    pub common: Common,
    /// When and by whom it was used.
    pub dates: QueueTimes,
    /// Bytes that wait.
    pub bytes: usize,
    /// Messages that wait.
    pub messages: usize,
    /// Bytes that may wait.
    pub bytes_max: usize,
}

/// The queue of that key, or a new one.
pub fn get(request: GetRequest) -> Result<u32> {
    let mut queues = QUEUES.lock();
    if let Some(number) = as_caller(|caller| queues.find(request, caller)).map_err(refused)? {
        return Ok(number);
    }
    let state = State {
        queue: Queue::new(QUEUE_BYTES_MAX),
        facts: QueueTimes {
            changed: now_seconds(),
            ..QueueTimes::default()
        },
        is_removed: false,
    };
    let queue = Arc::new(MessageQueue {
        state: Spin::new(state),
        senders: WaitQueue::new(),
        receivers: WaitQueue::new(),
    });
    as_caller(|caller| queues.insert(request, caller, queue)).map_err(refused)
}

fn find(number: u32, wanted: u16) -> Result<Arc<MessageQueue>> {
    let queues = QUEUES.lock();
    let entry = queues.get(number).map_err(refused)?;
    check_mode(entry, wanted)?;
    Ok(entry.object.clone())
}

/// Waits until `attempt` gives something, or not at all.
fn wait_at<T>(
    queue: &WaitQueue,
    may_wait: bool,
    mut attempt: impl FnMut() -> Option<Result<T>>,
) -> Result<Option<T>> {
    if !may_wait {
        return attempt().transpose();
    }
    let how = Wait::INTERRUPTIBLE.restart(Restart::IfNoHandler);
    queue.wait(how, attempt)?.map(Some)
}

/// Sends a message.
pub fn send(number: u32, message: Message, may_wait: bool) -> Result<()> {
    let queue = find(number, 2)?;
    let mut message = Some(message);
    let sent = wait_at(&queue.senders, may_wait, || {
        let mut state = queue.state.lock();
        if state.is_removed {
            return Some(Err(Error::Removed));
        }
        match state.queue.put(message.take()?) {
            Ok(()) => {
                state.facts.sent = now_seconds();
                state.facts.sender = current().process.id();
                Some(Ok(()))
            }
            Err(back) => {
                message = Some(back);
                None
            }
        }
    })?;
    queue.receivers.wake_all();
    sent.ok_or(Error::WouldBlock)
}

/// Receives a message of at most `limit` bytes; a longer one is cut if it may be.
///
/// Errors: `NoMessage` if there is none and the caller does not wait.
pub fn receive(
    number: u32,
    pick: Pick,
    limit: usize,
    may_cut: bool,
    may_wait: bool,
) -> Result<Message> {
    let queue = find(number, 4)?;
    let received = wait_at(&queue.receivers, may_wait, || {
        let mut state = queue.state.lock();
        if state.is_removed {
            return Some(Err(Error::Removed));
        }
        match state.queue.take(pick, limit, may_cut) {
            Ok(message) => {
                if !matches!(pick, Pick::CopyOf(_)) {
                    state.facts.received = now_seconds();
                    state.facts.receiver = current().process.id();
                }
                Some(Ok(message))
            }
            Err(QueueError::TooLarge) => Some(Err(Error::ArgumentsTooLong)),
            Err(QueueError::WouldBlock) => None,
        }
    })?;
    queue.senders.wake_all();
    received.ok_or(Error::NoMessage)
}

/// What is known of a queue.
pub fn look(look: Look) -> Result<Facts> {
    let (common, queue) = {
        let queues = QUEUES.lock();
        let (number, entry) = look_at(&queues, look)?;
        (super::common(number, entry), entry.object.clone())
    };
    let state = queue.state.lock();
    Ok(Facts {
        common,
        dates: state.facts,
        bytes: state.queue.bytes(),
        messages: state.queue.len(),
        bytes_max: state.queue.bytes_max,
    })
}

/// Changes owner, permissions, and how many bytes may wait; more than usual needs a privilege.
pub fn set(number: u32, settings: Settings, bytes_max: usize) -> Result<()> {
    let queue = {
        let mut queues = QUEUES.lock();
        check_owner(&queues, number)?;
        if bytes_max > QUEUE_BYTES_MAX {
            let credentials = current().credentials.get();
            credentials.require(Capability::SysResource)?;
        }
        super::set(&mut queues, number, settings)?;
        queues.get(number).map_err(refused)?.object.clone()
    };
    {
        let mut state = queue.state.lock();
        state.queue.bytes_max = bytes_max;
        state.facts.changed = now_seconds();
    }
    queue.senders.wake_all();
    Ok(())
}

/// Removes a queue with its messages: those who wait there are told.
pub fn remove(number: u32) -> Result<()> {
    let queue = {
        let mut queues = QUEUES.lock();
        check_owner(&queues, number)?;
        queues.remove(number).map_err(refused)?.object
    };
    queue.state.lock().is_removed = true;
    queue.senders.wake_all();
    queue.receivers.wake_all();
    Ok(())
}

/// Queues, the highest place, messages and bytes of all.
pub fn totals() -> (usize, usize, usize, usize) {
    let queues = QUEUES.lock();
    let (mut messages, mut bytes) = (0, 0);
    for (_, entry) in queues.iter() {
        let state = entry.object.state.lock();
        messages += state.queue.len();
        bytes += state.queue.bytes();
    }
    (queues.len(), queues.highest(), messages, bytes)
}
