//! Frames on their way from a ring to the shard that they belong to.
//!
//! Each shard has one queue for each ring (a soft ring of `link::steer`, which counts and
//! bounds what is in it, and drops a chain when it is full), and one short queue for
//! exceptions: copies of what neighbours say, quoted packets' errors, DHCP's answers. Only the
//! shard's own CPU empties them, a batch at a time; it is called by an interrupt when they
//! were empty. A ring's frames for its own shard go the same way, so they keep their order.
//! It need not call itself for them: it comes to its shards after its rings (`link::round`).
//!
//! Like the rings they are the card's, of which there is one.
//!
//! Lock order: a shard or a ring, then one queue, which is innermost.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use link::RxChain;
use link::steer::Progress;
use mach::sync::{Once, Spin};
use mbuf::RxFrame;

use super::runners;
use crate::stack::locked::LockedShard;

/// Exceptions that wait for one shard.
const EXCEPTIONS_MAX: usize = 64;

/// Frames of one ring for one shard.
struct SoftRing {
    frames: Spin<RxChain>,
    progress: Arc<Progress>,
}

/// All that waits for one shard.
struct Inbox {
    rings: Box<[SoftRing]>,
    exceptions: Spin<VecDeque<RxFrame>>,
    /// The shard's CPU was called and has not looked yet.
    is_called: AtomicBool,
    /// Exceptions dropped because there were too many.
    dropped: AtomicU64,
}

impl Inbox {
    fn new(rings: u16) -> Self {
        let ring = || SoftRing {
            frames: Spin::new(RxChain::new()),
            progress: Arc::default(),
        };
        Self {
            rings: (0..rings).map(|_| ring()).collect(),
            exceptions: Spin::new(VecDeque::new()),
            is_called: AtomicBool::new(false),
            dropped: AtomicU64::new(0),
        }
    }
}

/// From the card's rings to the first stack's shards: the card is the machine's.
static INBOXES: Once<Box<[Inbox]>> = Once::new();

fn inbox(shard: u16) -> Option<&'static Inbox> {
    INBOXES.get()?.get(usize::from(shard))
}

/// Makes the queues from so many rings to so many shards; once, when the card is attached.
pub(crate) fn init(shards: u16, rings: u16) {
    INBOXES.call_once(|| (0..shards).map(|_| Inbox::new(rings)).collect());
}

/// How far each shard has come with the frames of `ring`.
pub(crate) fn progress(ring: u16) -> Vec<Arc<Progress>> {
    let inboxes = INBOXES.get().into_iter().flatten();
    inboxes
        .filter_map(|inbox| inbox.rings.get(usize::from(ring)))
        .map(|ring| ring.progress.clone())
        .collect()
}

/// Hands frames of `ring` over to `shard`.
pub(crate) fn put(shard: u16, ring: u16, frames: &mut RxChain) {
    let Some(inbox) = inbox(shard) else { return };
    if let Some(queue) = inbox.rings.get(usize::from(ring)) {
        let is_own = {
            let mut waiting = queue.frames.lock();
            waiting.append(frames);
            // A CPU that gets the shard now comes to this queue afterwards (`runners`).
            runners::is_own(shard)
        };
        call(shard, inbox, is_own);
    }
}

/// Hands an exception over to `shard`.
pub(crate) fn put_exception(shard: u16, frame: RxFrame) {
    let Some(inbox) = inbox(shard) else { return };
    let mut queue = inbox.exceptions.lock();
    if queue.len() >= EXCEPTIONS_MAX {
        inbox.dropped.fetch_add(1, Ordering::Relaxed);
        return;
    }
    queue.push_back(frame);
    let is_own = runners::is_own(shard);
    drop(queue);
    call(shard, inbox, is_own);
}

/// Makes the shard's CPU look, unless this is it, or it was called already.
fn call(shard: u16, inbox: &Inbox, is_own: bool) {
    if !is_own && !inbox.is_called.swap(true, Ordering::SeqCst) {
        runners::call(shard);
    }
}

/// Takes a batch of what waits for shard `number` through its stack; says how many frames
/// it had, `poll::BATCH_FRAMES_MAX` or more if there are more.
pub(crate) fn take_batch(number: u16, shard: &mut LockedShard<'_>) -> usize {
    let Some(inbox) = inbox(number) else {
        return 0;
    };
    inbox.is_called.store(false, Ordering::SeqCst);
    let mut count = shard.receive(|_| inbox.exceptions.lock().pop_front());
    for (number, ring) in (0..).zip(&inbox.rings) {
        count += take_ring(number, ring, shard);
    }
    if count != 0 {
        let (stack, link) = shard.parts();
        stack.flush(link);
    }
    count
}

/// Frames leave the queue one by one: a CPU that comes between them goes on behind them.
fn take_ring(number: u16, ring: &SoftRing, shard: &mut LockedShard<'_>) -> usize {
    let count = shard.receive(|_| ring.frames.lock().pop());
    if count != 0 && ring.progress.finish(count as u64) {
        runners::call(number);
    }
    count
}

/// Exceptions dropped so far, of all shards.
pub(crate) fn dropped() -> u64 {
    let inboxes = INBOXES.get().into_iter().flatten();
    inboxes
        .map(|inbox| inbox.dropped.load(Ordering::Relaxed))
        .sum()
}
