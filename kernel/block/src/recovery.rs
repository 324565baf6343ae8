//! A device that does not answer, or not by the rules: stopped and started anew by the threads whose
//! requests it has.
//!
//! The first of them does it, under `control`; the others find that nothing is late any more. What was
//! under way is sent again (`block`), a few times; then its threads get EIO. A device that
//! does not start is gone, and all that is asked of it fails at once.
//!
//! Requests that no thread waits for are looked after by a timer, which is armed while there are any
//! ([`Disk::watch`]): it must not block, so while others are at `control` it looks again later.

use alloc::sync::Arc;
use core::sync::atomic::Ordering;

use base::{Duration, Instant};
use block::Control;
use mach::klog;
use sched::timer::{self, Expire, Target};
use sched::{Softirq, raise};

use crate::disk::Disk;

/// How often requests that no thread waits for are looked at.
const LOOK: Duration = Duration::from_secs(1);

impl Disk {
    /// Sees to the device, if it is stuck.
    pub(crate) fn recover(&self) {
        self.recover_by(&mut **self.control.lock());
        self.complete();
        raise(Softirq::Block);
    }

    /// Has a timer look after a request.
    pub(crate) fn watch(&self) {
        if self.is_watched.load(Ordering::SeqCst) || self.is_watched.swap(true, Ordering::SeqCst) {
            return;
        }
        if let Some(disk) = self.me.upgrade() {
            timer::add(mach::time::now() + LOOK, Target::Call(disk));
        }
    }

    fn is_idle(&self) -> bool {
        let mut lanes = self.lanes.iter();
        lanes.all(|lane| lane.queue.lock().is_idle())
    }

    fn recover_by(&self, control: &mut (dyn Control + Send)) {
        let now = mach::time::now();
        let mut lanes = self.lanes.iter();
        if !lanes.any(|lane| lane.queue.lock().is_stuck(now)) {
            self.is_stuck.store(false, Ordering::Release);
            return;
        }
        klog!("disk {} does not answer and is started anew", self.name());
        control.stop();
        for lane in &self.lanes {
            lane.queue.lock().stop();
        }
        match control.start() {
            Ok(channels) if channels.len() == self.lanes.len() => {
                for (lane, channel) in self.lanes.iter().zip(channels) {
                    let told = &mut |completion| lane.idle.hand_out(completion);
                    lane.queue.lock().restart(channel, now, told);
                }
            }
            _ => {
                control.stop();
                klog!("disk {} is gone", self.name());
                self.is_gone.store(true, Ordering::Release);
                for lane in &self.lanes {
                    let told = &mut |completion| lane.idle.hand_out(completion);
                    lane.queue.lock().fail_all(now, told);
                }
            }
        }
        self.is_stuck.store(false, Ordering::Release);
    }
}

impl Expire for Disk {
    fn expire(self: Arc<Self>, now: Instant) {
        if self.is_idle() {
            self.is_watched.store(false, Ordering::SeqCst);
            // Who began one in between has seen that there was a timer.
            if self.is_idle() || self.is_watched.swap(true, Ordering::SeqCst) {
                return;
            }
        }
        if let Some(mut control) = self.control.try_lock() {
            self.recover_by(&mut **control);
            raise(Softirq::Block);
        }
        timer::add(now + LOOK, Target::Call(self));
    }
}
