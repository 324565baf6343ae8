//! Frames in, frames out: when the device is asked and when it is told.
//!
//! Each CPU does this for the shards that it runs ([`runners`]). Asked: whenever a program is about
//! to wait ([`poll_now`]), before a CPU halts, after the device's interrupt, and at the
//! latest [`fallback`] after the last time while programs compute. Told: at the same
//! moments, and with what is likely the last frame of a batch (`link::tx_batch`), so that the answers
//! to a whole batch of requests cost one notification. A CPU whose program sent by another CPU's shard
//! tells that one's ring as well (`alarm`). What the device has no room for waits (`link::tx_queue`),
//! no longer than [`fallback`] without a look: a device does not interrupt for room.
//!
//! The interrupt stays disarmed while frames come. It is armed before a halt, and when a
//! look finds nothing, or the frame of a client that waits for its answer before it sends
//! another: a program that computes is then left alone until there is a frame, and needs no alarm.
//! It is armed before a halt only where polls before halts find frames (`sched::halt_poll`).
//! Whenever it is armed the queue is looked at once more, so that no frame is slept on.

use core::ops::RangeInclusive;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use base::{CpuSet, Duration, Instant};
use inet::{Env, Stack};
use link::round::{self, Runner};
use mbuf::RxFrame;
use sched::{Look, Softirq, Work, forget_rest, halt_poll, raise, raise_by_rest, register_softirq};

use super::pair::Pair;
use super::{alarm, batch_end, inbox, ring, runners};
use crate::packet;
use crate::stack::changes::look_for_changes;
use crate::stack::env::{Attachment, Link, Port};
use crate::stack::interface::Interface;
use crate::stack::locked::LockedShard;
use crate::stack::{self, NetStack, egress, routes};

/// Frames taken from the device before other work gets its turn.
pub(crate) const BATCH_FRAMES_MAX: usize = 64;
/// Frames handed to the device before it is told even though more may follow.
const UNANNOUNCED_MAX: u32 = 32;
/// How long the end of the machine waits for the device.
const DRAIN_MAX: Duration = Duration::from_millis(20);
/// A program that computes leaves the network alone for this long at most while frames come: for
/// the shortest time, unless alarms cost much here.
const FALLBACKS: RangeInclusive<Duration> = Duration::from_micros(200)..=Duration::from_millis(16);
/// Deadlines of connections within the machine are looked at this much later than they were
/// set. The shortest, of an acknowledgement that may wait, is four times as long.
const LOOP_FALLBACK: Duration = Duration::from_millis(10);

/// The card's only shard, where there is one.
const ALONE: u16 = 0;

/// The fallback of this machine, whose alarms cost what they cost, in nanoseconds.
static FALLBACK_NS: AtomicU64 = AtomicU64::new(0);
/// Whether there is a card, the machine's one; without it nothing needs polling.
static ATTACHED: AtomicBool = AtomicBool::new(false);

/// Connects the softirq; once at boot.
pub(crate) fn init() {
    let shortest = mach::time::affordable_interval(FALLBACKS);
    // Where samples are hardly further apart, their alarms serve.
    let samples = sched::sample::period();
    let fallback = match samples <= shortest * 2 {
        true => samples,
        false => shortest,
    };
    FALLBACK_NS.store(fallback.as_nanos(), Ordering::Relaxed);
    register_softirq(
        Softirq::Net,
        Work {
            run: poll_batch,
            look: Some(Look { poll, prepare_idle }),
        },
    );
}

/// How long a program that computes may leave the network alone.
#[inline]
fn fallback() -> Duration {
    Duration::from_nanos(FALLBACK_NS.load(Ordering::Relaxed))
}

/// Gives the only stack its device, whose interrupt handler raises [`Softirq::Net`].
pub(crate) fn attach(port: Port) {
    let facts = facts_of(&*port);
    stack::first().with_shard(0, |stack, link| {
        stack.attach(facts);
        link.attachment = Attachment::Own(Pair::of_card(port));
    });
    set_attached(&facts);
}

/// There is a card, and every shard that is to have a part of it has one.
pub(crate) fn set_attached(facts: &inet::Port) {
    stack::first()
        .shared
        .interfaces
        .put(Interface::of_card(facts));
    ATTACHED.store(true, Ordering::Release);
}

/// What a stack must know of its device.
pub(crate) fn facts_of(port: &dyn hal::FramePort) -> inet::Port {
    let capabilities = port.capabilities();
    inet::Port {
        mac: wire::MacAddr(port.mac()),
        mtu: port.mtu(),
        offloads: inet::Offloads {
            checksum: capabilities.checksum,
            segment_v4: capabilities.tso4,
            segment_v6: capabilities.tso6,
        },
    }
}

/// Takes what the device has and tells it what we have; called where a program waits.
pub fn poll_now() {
    if ATTACHED.load(Ordering::Acquire) {
        poll_batch();
    }
}

/// Sends what programs left behind (the last answers, the ends of connections) before
/// the machine goes down; gives up after [`DRAIN_MAX`].
pub fn drain() {
    let deadline = mach::time::now() + DRAIN_MAX;
    loop {
        poll_now();
        let shards = 0..stack::first().count();
        let unsent: usize = shards.map(unsent_of).sum();
        if unsent == 0 || mach::time::now() >= deadline {
            return;
        }
        mach::cpu::relax();
    }
}

fn unsent_of(shard: u16) -> usize {
    let unsent = stack::first().with_shard(shard, |_, link| {
        announce(link);
        match &mut link.attachment {
            Attachment::None => 0,
            Attachment::Own(pair) => pair.unsent(),
            Attachment::Ring(ring) => ring.unsent(),
        }
    });
    unsent.unwrap_or(0)
}

/// One batch, and what it brings to interfaces over links.
fn poll_batch() {
    batch_end::begin_batch();
    poll_card();
    batch_end::end_batch();
    look_for_changes();
}

fn poll_card() {
    forget_rest(Softirq::Net);
    let of = stack::first();
    if of.count() == 1 {
        return poll_alone(of);
    }
    alarm::announce();
    round::make(&ThisCpu { of });
}

/// The only shard is polled by whichever CPU waits, unless it is bound to one; the others then only
/// tell the device of what they sent.
fn poll_alone(of: &NetStack) {
    match runners::is_own(ALONE) {
        true => poll_shard(of, ALONE, take_batch),
        false => _ = of.with_shard(ALONE, |_, link| announce(link)),
    }
}

/// This CPU, to the rings and shards of the card.
struct ThisCpu<'s> {
    of: &'s NetStack,
}

impl Runner for ThisCpu<'_> {
    fn own(&self) -> CpuSet {
        runners::own()
    }

    fn is_own(&self, shard: u16) -> bool {
        runners::is_own(shard)
    }

    fn call(&self, shard: u16) {
        runners::call(shard);
    }

    fn pull(&self, shard: u16) -> bool {
        ring::of_shard(shard).is_some_and(ring::Ring::pull)
    }

    fn run(&self, shard: u16) {
        poll_shard(self.of, shard, |locked| inbox::take_batch(shard, locked));
        ring::announce(shard);
    }
}

fn poll_shard(of: &NetStack, number: u16, take: impl FnOnce(&mut LockedShard<'_>) -> usize) {
    let Some(mut shard) = LockedShard::new(of, number) else {
        return;
    };
    let count = take(&mut shard);
    let (stack, link) = shard.parts();
    let deadline = run_due(of, stack, link);
    let now = link.now();
    let has_more = count >= BATCH_FRAMES_MAX || deadline <= now;
    let is_last = !halt_poll::pays() && (count == 0 || count == 1 && link.tx().expects_one());
    if has_more || is_last && !arm_doorbell(link) {
        runners::call(number);
    }
    let latest = now + fallback();
    match is_doorbell_armed(link) || deadline <= latest {
        true => alarm::arm(link, deadline),
        false => alarm::arm_fallback(link, latest),
    }
    drop(shard);
    of.follow_addresses();
}

/// Runs a shard's timers and sends what they cause; says when the next one is due. A ring is
/// left to the caller to announce, once the shard is free.
pub(crate) fn run_due(of: &NetStack, stack: &mut Stack, link: &mut Link) -> Instant {
    let has_several = of.shard_count() > 1;
    if has_several && link.number != 0 {
        follow_first(of, stack, link);
    }
    let deadline = stack.expire(link).unwrap_or(Instant::NEVER);
    if has_several && link.number == 0 {
        // What it has may have changed just now: an address that nobody objected to.
        follow_first(of, stack, link);
    }
    if has_several && of.has_further() {
        egress::publish(of, stack, link);
    }
    link.is_loop_alarmed = false;
    if let Attachment::Own(_) = link.attachment {
        announce(link);
    }
    match link.has_waiting() {
        true => deadline.min(link.now + fallback()),
        false => deadline,
    }
}

/// A shard of the card has what the first one has.
fn follow_first(of: &NetStack, stack: &mut Stack, link: &mut Link) {
    let shards = of.count();
    if link.number < shards && shards > 1 {
        routes::follow(stack, link, shards);
    }
}

fn is_doorbell_armed(link: &Link) -> bool {
    match &link.attachment {
        Attachment::Ring(ring) => ring.is_armed(),
        Attachment::Own(_) | Attachment::None => link.is_doorbell_armed,
    }
}

/// One batch from the device of the only shard through its stack; says how many frames it had.
pub(crate) fn take_batch(shard: &mut LockedShard<'_>) -> usize {
    let fetched = fetch(shard.parts().1);
    let received = shard.receive(next_fetched);
    if received != 0 {
        let (stack, link) = shard.parts();
        stack.flush(link);
    }
    // Another CPU may have received some of them.
    fetched.max(received)
}

fn next_fetched(link: &mut Link) -> Option<RxFrame> {
    packet::received(&link.shared, link.interface, link.batch.front()?);
    link.batch.pop_front()
}

/// Takes a batch from the device, unless another CPU is at one or has got the shard; says how many
/// frames it has.
fn fetch(link: &mut Link) -> usize {
    if link.is_polled && !runners::is_own(link.number) {
        return 0;
    }
    let Attachment::Own(pair) = &mut link.attachment else {
        return 0;
    };
    if !link.batch.is_empty() {
        return 0;
    }
    let batch = pair.receive(BATCH_FRAMES_MAX, |frame| link.batch.push_back(frame));
    link.pulls.pulled(&batch, link.is_doorbell_armed);
    if batch.frames != 0 && link.is_doorbell_armed {
        link.is_doorbell_armed = false;
        pair.disarm();
    }
    batch.frames
}

/// The program rests: tells the device about the frames that it was given.
pub(crate) fn announce(link: &mut Link) {
    link.announce();
    link.tx().rest();
}

/// After a program sent: lets frames gather, but not too many, and not once the batch has as
/// many as the last one (`link::tx_batch`); [`fallback`] sees to it that it is not for long.
#[inline]
pub fn after_send(link: &mut Link) {
    after_send_by(link, |_| false);
}

/// The same after a call of `stack` that does nothing but to send: where the alarm serves all
/// deadlines already, no look is needed before the CPU halts.
#[inline]
pub fn after_bytes(stack: &Stack, link: &mut Link) {
    after_send_by(link, |link| {
        let deadline = stack.next_deadline().unwrap_or(Instant::NEVER);
        alarm::is_served(link, deadline)
    });
}

#[inline]
fn after_send_by(link: &mut Link, is_served: impl FnOnce(&Link) -> bool) {
    let unannounced = link.tx().unannounced();
    if unannounced >= UNANNOUNCED_MAX || unannounced != 0 && link.tx().is_complete() {
        link.announce();
        if !is_served(link) {
            heed_deadlines(link);
        }
    } else if unannounced != 0 {
        alarm::arm_fallback(link, link.now + fallback());
        alarm::note(link);
    } else if core::mem::take(&mut link.has_looped) && !link.is_loop_alarmed {
        // No frame and no interrupt follows, so that nobody else would look.
        link.is_loop_alarmed = true;
        alarm::arm(link, link.now + LOOP_FALLBACK);
    }
}

/// A frame waits for the device's room, and perhaps nobody rests or sends before there is some.
#[cold]
pub(crate) fn await_room(link: &mut Link) {
    alarm::arm_fallback(link, link.now + fallback());
    alarm::note(link);
}

/// Sees to it that the deadlines which sending set are heard of: nobody else may wake the
/// machine if all the frames are lost. They are so far off that a look before the CPU halts
/// or at its next sample is in time.
#[inline]
fn heed_deadlines(link: &mut Link) {
    match alarm::is_own(link) {
        true => raise_by_rest(Softirq::Net),
        false => alarm::arm_fallback(link, link.now + fallback()),
    }
}

/// After a program was refused for want of room: nobody may look at its connection before the
/// alarm that is set for another's, so that of the walk over those who wait must be set.
pub fn after_refusal(stack: &Stack, link: &mut Link) {
    let deadline = stack.next_deadline().unwrap_or(Instant::NEVER);
    alarm::arm(link, deadline.max(link.now + fallback()));
}

/// A look before a halt: true if frames are there. What programs sent is announced first: the
/// frames that the CPU waits for may be answers to it.
fn poll() -> bool {
    call_where(ring::Ring::poll, has_received)
}

/// Calls for each shard of this CPU of whose pair of queues `look` is so, or `look_alone` of that of
/// the card's only shard, after what was sent by it is announced; says whether there are any.
fn call_where(look: fn(&ring::Ring) -> bool, look_alone: fn(&mut Link) -> bool) -> bool {
    let of = stack::first();
    if of.count() == 1 {
        let found = of.with_shard(ALONE, |_, link| {
            announce(link);
            runners::is_own(ALONE) && look_alone(link)
        });
        let found = found.unwrap_or(false);
        if found {
            raise(Softirq::Net);
        }
        return found;
    }
    alarm::announce();
    round::look(&ThisCpu { of }, |shard| {
        ring::announce(shard);
        ring::of_shard(shard).is_some_and(look)
    })
}

/// Whether the device of the only shard has frames, for which no interrupt comes any more.
fn has_received(link: &mut Link) -> bool {
    let Attachment::Own(pair) = &mut link.attachment else {
        return false;
    };
    if core::mem::take(&mut link.is_doorbell_armed) {
        pair.disarm();
    }
    pair.has_received()
}

/// Before a halt: false if frames are there already.
fn prepare_idle() -> bool {
    !call_where(|ring| !ring.arm(), |link| !arm_doorbell(link))
}

/// Has the device interrupt for the next frame; false if frames are there already.
fn arm_doorbell(link: &mut Link) -> bool {
    match &mut link.attachment {
        Attachment::Ring(ring) => return ring.arm(),
        Attachment::Own(pair) => link.is_doorbell_armed = !pair.arm(),
        Attachment::None => link.is_doorbell_armed = true,
    }
    link.is_doorbell_armed
}
