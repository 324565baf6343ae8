//! A device that does not answer, or not by the rules: stopped and started anew by the threads whose
//! requests it has.
//!
//! The first of them does it, under `control`; the others find that nothing is late any more. What was
//! under way is sent again (`block`), a few times; then its threads get EIO. A device that
//! does not start is gone, and all that is asked of it fails at once.

use core::sync::atomic::Ordering;

use mach::klog;

use crate::disk::{Disk, hand_out};

impl Disk {
    /// Sees to the device, if it is stuck.
    pub(crate) fn recover(&self) {
        let mut control = self.control.lock();
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
                    lane.queue.lock().restart(channel, now, &mut hand_out);
                }
            }
            _ => {
                control.stop();
                klog!("disk {} is gone", self.name());
                self.is_gone.store(true, Ordering::Release);
                for lane in &self.lanes {
                    lane.queue.lock().fail_all(now, &mut hand_out);
                }
            }
        }
        self.is_stuck.store(false, Ordering::Release);
        drop(control);
        self.complete();
    }
}
