//! The balloon: frames that the host has back for a while.
//!
//! One thread does all of it. It sleeps until the host asks for something, or somebody here needs memory; then it goes
//! in steps (`core/balloon`), each of which is one list of frames that the device has used before the next begins. So
//! an idle machine does nothing, and one without the device has no thread.
//!
//! Frames that the host is to have come from where those of programs come from, so the kernel's reserve is left alone,
//! and only as long as more than the floor are free. Where that is too little for what the host asks for, caches shrink
//! once.
//!
//! [`reclaim`](crate::reclaim) takes frames back before it ends a program ([`take_back`]). Who asks waits for the thread,
//! which needs no memory to give frames back, and no lock that somebody has who may ask caches to shrink; and for the
//! device, for which there is a deadline.
//!
//! Invariants: a frame is in [`Frames`] from before the device hears of it until the device has used the list that takes
//! it back. If the device breaks, the frames stay there: nobody knows whether the host has them.
//!
//! Lock order: the device is the thread's alone and has no lock.

mod frames;

use alloc::boxed::Box;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};

use balloon::{Balloon, STEP_FRAMES, Step, floor_of};
use base::Duration;
use hal::{BalloonBroken, BalloonDevice, HANDOVER_FRAMES_MAX, Handover, MemoryUse};
use mach::sync::Spin;
use sched::{Softirq, Work, raise, register_softirq};
use sync::{Wait, WaitQueue};

use crate::reclaim;
use frames::Frames;

const _: () = assert!(STEP_FRAMES <= HANDOVER_FRAMES_MAX, "a step is one handover");

/// How long somebody who needs memory waits for the host, which may be busy: a program is ended otherwise.
const PATIENCE: Duration = Duration::from_secs(20);
/// Frames that are taken back at once for somebody who needs one.
const TAKEN_BACK: u64 = 1024;

/// The machine's device until its thread has it, and how the machine's memory is used.
static DEVICE: Spin<Option<Attached>> = Spin::new(None);
/// The device interrupted, or somebody needs memory. The machine has one balloon.
static IS_CALLED: AtomicBool = AtomicBool::new(false);
/// The host asks for something new, or anew.
static IS_ASKED: AtomicBool = AtomicBool::new(false);
/// Somebody here needs frames.
static IS_NEEDED: AtomicBool = AtomicBool::new(false);
/// The thread waits here.
static CALLS: WaitQueue = WaitQueue::new();
/// Who needs memory waits here.
static GIVEN: WaitQueue = WaitQueue::new();

/// Whether frames may be taken back.
static LETS_TAKE_BACK: AtomicBool = AtomicBool::new(false);
/// Frames that the host has.
static HELD: AtomicU64 = AtomicU64::new(0);
/// Frames that it got since the start.
static INFLATED: AtomicU64 = AtomicU64::new(0);
/// Frames that were taken back since the start.
static DEFLATED: AtomicU64 = AtomicU64::new(0);

struct Attached {
    device: Box<dyn BalloonDevice>,
    memory_use: fn() -> MemoryUse,
}

/// What the balloon did, in frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BalloonCounts {
    /// What the host has.
    pub held: u64,
    /// What it got since the start.
    pub inflated: u64,
    /// What was taken back since the start.
    pub deflated: u64,
    /// What of it is not the machine's any more: all, where nothing may be taken back for need.
    pub lost: u64,
}

/// What it did so far.
pub fn counts() -> BalloonCounts {
    let held = HELD.load(Relaxed);
    BalloonCounts {
        held,
        inflated: INFLATED.load(Relaxed),
        deflated: DEFLATED.load(Relaxed),
        lost: if LETS_TAKE_BACK.load(Relaxed) {
            0
        } else {
            held
        },
    }
}

/// Gives the machine its device; false if it has one. [`run`] is to be a thread's then. At boot.
pub fn attach(device: Box<dyn BalloonDevice>, memory_use: fn() -> MemoryUse) -> bool {
    let mut slot = DEVICE.lock();
    if slot.is_some() {
        return false;
    }
    LETS_TAKE_BACK.store(device.lets_take_back(), Relaxed);
    *slot = Some(Attached { device, memory_use });
    drop(slot);
    let work = Work {
        run: call,
        look: None,
    };
    register_softirq(Softirq::Balloon, work);
    // The host may have asked before.
    IS_ASKED.store(true, SeqCst);
    IS_CALLED.store(true, SeqCst);
    true
}

/// Whether there is a device, and no thread for it yet.
pub fn is_attached() -> bool {
    DEVICE.lock().is_some()
}

/// An interrupt: the host asks for something, perhaps for the same as before.
pub fn note_change() {
    IS_ASKED.store(true, SeqCst);
    raise(Softirq::Balloon);
}

/// The softirq: the thread has something to look at.
fn call() {
    // An exchange, as `waitq` wants it.
    IS_CALLED.swap(true, SeqCst);
    CALLS.wake_all();
}

/// Takes frames back for somebody who has found none. False if the host has none, or does not answer. May block.
pub(crate) fn take_back() -> bool {
    let before = DEFLATED.load(SeqCst);
    if HELD.load(SeqCst) == 0 || !LETS_TAKE_BACK.load(Relaxed) {
        return false;
    }
    IS_NEEDED.store(true, SeqCst);
    call();
    let is_given = || (DEFLATED.load(SeqCst) != before).then_some(());
    let deadline = mach::time::now() + PATIENCE;
    GIVEN
        .wait(Wait::UNINTERRUPTIBLE.until(deadline), is_given)
        .is_ok()
}

/// What the balloon's thread does.
pub fn run(_: usize) -> ! {
    sched::finish_switch();
    let attached = DEVICE.lock().take();
    if let Some(attached) = attached {
        let mut keeper = Keeper {
            device: attached.device,
            memory_use: attached.memory_use,
            balloon: Balloon::default(),
            frames: Frames::new(),
        };
        let broken = keeper.serve();
        // The frames are gone for good, and stay counted.
        LETS_TAKE_BACK.store(false, SeqCst);
        mach::klog!("{broken}");
        core::mem::forget(keeper.frames);
    }
    loop {
        let _ = CALLS.wait(Wait::UNINTERRUPTIBLE, || None::<()>);
    }
}

/// Whoever keeps the balloon: the thread.
struct Keeper {
    device: Box<dyn BalloonDevice>,
    memory_use: fn() -> MemoryUse,
    balloon: Balloon,
    frames: Frames,
}

impl Keeper {
    /// Until the device breaks.
    fn serve(&mut self) -> BalloonBroken {
        loop {
            let is_called = || IS_CALLED.swap(false, SeqCst).then_some(());
            // Without a deadline there is no other end.
            let _ = CALLS.wait(Wait::UNINTERRUPTIBLE, is_called);
            if let Err(broken) = self.work() {
                return broken;
            }
        }
    }

    /// Tells the host how memory is used, if it wants to know.
    fn answer(&mut self) {
        if self.device.wants_use() {
            self.device.report_use(&(self.memory_use)());
        }
    }

    /// Goes where the host wants the balloon, as far as it can.
    fn work(&mut self) -> Result<(), BalloonBroken> {
        loop {
            self.answer();
            self.listen();
            let memory = mach::mem::stats();
            let floor = floor_of(memory.total, mach::mem::reserve_of(memory.total));
            match self.balloon.step(memory.free, floor) {
                Step::Grow(frames) => self.grow(frames)?,
                Step::Shrink(frames) => self.shrink(frames)?,
                Step::ShrinkCaches => _ = reclaim::shrink(),
                Step::Rest => return Ok(()),
            }
            sched::resched_point();
        }
    }

    /// Hears what the host wants, and what the machine needs.
    fn listen(&mut self) {
        if IS_ASKED.swap(false, SeqCst) {
            self.balloon.ask(self.device.target().into());
        }
        if IS_NEEDED.swap(false, SeqCst) {
            self.balloon.take_back(TAKEN_BACK);
        }
    }

    fn grow(&mut self, wanted: usize) -> Result<(), BalloonBroken> {
        let numbers = self.frames.add(wanted);
        let count = numbers.len();
        if count == 0 {
            self.balloon.stop();
            return Ok(());
        }
        self.device.hand_over(Handover::ToHost, numbers)?;
        self.await_device()?;
        self.balloon.grew(count);
        INFLATED.fetch_add(count as u64, Relaxed);
        self.tell();
        Ok(())
    }

    fn shrink(&mut self, wanted: usize) -> Result<(), BalloonBroken> {
        let numbers = self.frames.last(wanted);
        let count = numbers.len();
        self.device.hand_over(Handover::ToMachine, numbers)?;
        self.await_device()?;
        self.frames.release(count);
        self.balloon.shrank(count);
        self.tell();
        DEFLATED.fetch_add(count as u64, SeqCst);
        GIVEN.wake_all();
        Ok(())
    }

    fn await_device(&mut self) -> Result<(), BalloonBroken> {
        let device = &mut self.device;
        let done = || match device.is_done() {
            Ok(false) => None,
            other => Some(other.map(drop)),
        };
        // What else it is called for meanwhile is looked at afterwards.
        let end = CALLS.wait(Wait::UNINTERRUPTIBLE, done);
        end.unwrap_or(Err(BalloonBroken))
    }

    /// Says how many frames the host has, to it and to the machine's figures.
    fn tell(&mut self) {
        let held = self.balloon.held();
        HELD.store(held, SeqCst);
        self.device.set_actual(held as u32);
    }
}
