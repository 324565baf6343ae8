//! Frames in, frames out: when the device is asked and when it is told.
//!
//! Asked: whenever a program is about to wait ([`poll_now`]), before a CPU halts, after
//! the device's interrupt, and at the latest [`FALLBACK`] after the last time while
//! programs compute. Told: at the same moments, so that the answers to a whole batch of
//! requests cost one notification.
//!
//! The interrupt stays disarmed while the machine is loaded. It is armed before a halt,
//! and then the queue is looked at once more, so that no frame is slept on.

use core::sync::atomic::{AtomicBool, Ordering};

use base::{Duration, Instant};
use inet::{Env, Stack};

use super::shard::{Link, Port, with_stack};
use crate::packet;
use crate::sched::timer::{self, Target, TimerId};
use crate::sched::{Softirq, Work, raise, register_softirq};
use mach::sync::Spin;

/// Frames taken from the device before other work gets its turn.
const BATCH_FRAMES_MAX: usize = 64;
/// Frames handed to the device before it is told even though more may follow.
const UNANNOUNCED_MAX: u32 = 32;
/// How long the end of the machine waits for the device.
const DRAIN_MAX: Duration = Duration::from_millis(20);
/// A program that computes leaves the network alone for this long at most.
const FALLBACK: Duration = Duration::from_micros(200);

/// The one timer of the network: the stack's next deadline or the fallback.
static ALARM: Spin<Option<(Instant, TimerId)>> = Spin::new(None);
/// Whether there is a device; without one nothing needs polling.
static ATTACHED: AtomicBool = AtomicBool::new(false);

/// Connects the softirq; once at boot.
pub(super) fn init() {
    register_softirq(
        Softirq::Net,
        Work {
            run: poll_batch,
            prepare_idle,
        },
    );
}

/// Gives the stack its device, whose interrupt handler raises [`Softirq::Net`].
pub fn attach(port: Port) {
    let facts = inet::Port {
        mac: wire::MacAddr(port.mac()),
        mtu: port.mtu(),
        offloads: offloads_of(&*port),
    };
    super::interface::attached(&facts);
    with_stack(|stack, link| {
        stack.attach(facts);
        link.port = Some(port);
    });
    ATTACHED.store(true, Ordering::Release);
}

fn offloads_of(port: &dyn hal::FramePort) -> inet::Offloads {
    let capabilities = port.capabilities();
    inet::Offloads {
        checksum: capabilities.checksum,
        segment_v4: capabilities.tso4,
        segment_v6: capabilities.tso6,
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
        let unsent = with_stack(|_, link| link.port.as_mut().map_or(0, |port| port.unsent()));
        if unsent.unwrap_or(0) == 0 || mach::time::now() >= deadline {
            return;
        }
        mach::cpu::relax();
    }
}

fn poll_batch() {
    let deadline = with_stack(|stack, link| {
        if receive_batch(stack, link) {
            raise(Softirq::Net);
        }
        let deadline = stack.expire(link).unwrap_or(Instant::NEVER);
        announce(link);
        let fallback = link.now() + FALLBACK;
        if link.is_doorbell_armed {
            deadline
        } else {
            deadline.min(fallback)
        }
    });
    arm(deadline.unwrap_or(Instant::NEVER));
    crate::netlink::look();
}

/// One batch from the device through the stack; true if there may be more.
fn receive_batch(stack: &mut Stack, link: &mut Link) -> bool {
    // The port leaves the link while its frames go through the stack, which borrows the
    // link to answer them.
    let Some(mut port) = link.port.take() else {
        return false;
    };
    let mut batch = core::mem::take(&mut link.batch);
    let count = port.receive(BATCH_FRAMES_MAX, &mut |frame| {
        packet::received(&frame);
        batch.push(frame);
    });
    if count != 0 && core::mem::take(&mut link.is_doorbell_armed) {
        port.disarm();
    }
    link.port = Some(port);
    for frame in batch.drain(..) {
        stack.receive(link, frame);
    }
    link.batch = batch;
    if count != 0 {
        stack.flush(link);
    }
    count == BATCH_FRAMES_MAX
}

/// Tells the device about the frames that it was given.
fn announce(link: &mut Link) {
    if link.unannounced != 0
        && let Some(port) = &mut link.port
    {
        port.kick();
        link.unannounced = 0;
    }
}

/// After a program sent: lets frames gather, but not too many; [`FALLBACK`] sees to it
/// that it is not for long, and that the deadlines which sending set are heard of: nobody
/// else may wake the machine if all the frames are lost.
pub(super) fn after_send(link: &mut Link) {
    if link.unannounced == 0 {
        return;
    }
    arm(link.now() + FALLBACK);
    if link.unannounced >= UNANNOUNCED_MAX {
        announce(link);
    }
}

/// Arms the doorbell: false if frames are there already.
fn prepare_idle() -> bool {
    let quiet = with_stack(|_, link| {
        announce(link);
        link.is_doorbell_armed = link.port.as_mut().is_none_or(|port| !port.arm());
        link.is_doorbell_armed
    });
    let quiet = quiet.unwrap_or(true);
    if !quiet {
        raise(Softirq::Net);
    }
    quiet
}

/// Sees to it that the stack runs at `deadline` at the latest.
fn arm(deadline: Instant) {
    let mut alarm = ALARM.lock();
    if let Some((armed, timer)) = *alarm {
        if armed <= deadline && armed > mach::time::now() {
            return;
        }
        timer::cancel(timer);
        *alarm = None;
    }
    if deadline != Instant::NEVER {
        *alarm = Some((deadline, timer::add(deadline, Target::Raise(Softirq::Net))));
    }
}
