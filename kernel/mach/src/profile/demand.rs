//! Who wants samples: the host, and taps of the kernel. The source runs while anybody does.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::source;
use crate::sync::Spin;

/// The profiler is one for the machine: its source interrupts all CPUs.
static HOST: AtomicBool = AtomicBool::new(false);
/// How many taps are open; with the host they are who wants samples.
static TAPS: AtomicU64 = AtomicU64::new(0);
/// The name of the source that runs. Whoever changes the above holds it.
static SOURCE: Spin<Option<&'static str>> = Spin::new(None);

/// Whether the host wants samples.
pub(super) fn is_host() -> bool {
    HOST.load(Ordering::Acquire)
}

/// Whether a tap wants samples.
#[inline]
pub(super) fn is_tap() -> bool {
    TAPS.load(Ordering::Acquire) != 0
}

/// The host wants samples from now on; by which source they come, or `None` if there is none.
pub(super) fn add_host() -> Option<&'static str> {
    let mut source = SOURCE.lock();
    HOST.store(true, Ordering::Release);
    let name = start(&mut source);
    HOST.store(name.is_some(), Ordering::Release);
    name
}

/// The host wants none any more.
pub(super) fn remove_host() {
    let mut source = SOURCE.lock();
    HOST.store(false, Ordering::Release);
    stop_unwanted(&mut source);
}

/// A tap wants samples from now on; false if there is no source.
pub(super) fn add_tap() -> bool {
    let mut source = SOURCE.lock();
    TAPS.fetch_add(1, Ordering::AcqRel);
    let runs = start(&mut source).is_some();
    if !runs {
        TAPS.fetch_sub(1, Ordering::AcqRel);
    }
    runs
}

/// A tap wants none any more.
pub(super) fn remove_tap() {
    let mut source = SOURCE.lock();
    TAPS.fetch_sub(1, Ordering::AcqRel);
    stop_unwanted(&mut source);
}

fn start(source: &mut Option<&'static str>) -> Option<&'static str> {
    if source.is_none() {
        *source = source::start();
    }
    *source
}

fn stop_unwanted(source: &mut Option<&'static str>) {
    if !is_host() && !is_tap() && source.take().is_some() {
        source::stop();
    }
}
