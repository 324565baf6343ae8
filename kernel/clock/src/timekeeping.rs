//! When the machine's clock is kept (`mach::time`): looked at by its references, for which
//! an idle machine is woken once or twice a minute, and bent each second while there is an
//! adjustment to work off.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, Ordering};

use base::{Duration, Instant};
use mach::sync::Once;
use mach::time::{Adjusted, NtpError, Request};
use sched::timer::{self, Expire, Target};

const SECOND: Duration = Duration::from_secs(1);

/// Follows the references, on the boot CPU: KVM's clock is that CPU's.
struct Follow;

impl Expire for Follow {
    fn expire(self: Arc<Self>, _now: Instant) {
        let next = mach::time::follow();
        if next != Instant::NEVER {
            timer::add(next, Target::Call(self));
        }
        start_seconds();
    }
}

/// Works an adjustment off, on any CPU.
struct Seconds;

/// The wall clock is the machine's, and so is the second after which it is looked at.
static SECONDS: Once<Arc<Seconds>> = Once::new();
/// Whether it is among the deadlines.
static COUNTS_SECONDS: AtomicBool = AtomicBool::new(false);

impl Expire for Seconds {
    fn expire(self: Arc<Self>, now: Instant) {
        if mach::time::work_off() {
            timer::add(now + SECOND, Target::Call(self));
            return;
        }
        COUNTS_SECONDS.store(false, Ordering::Release);
        // Somebody may have adjusted it meanwhile.
        start_seconds();
    }
}

fn start_seconds() {
    if let Some(seconds) = SECONDS.get()
        && mach::time::has_to_work_off()
        && !COUNTS_SECONDS.swap(true, Ordering::AcqRel)
    {
        timer::add(mach::time::now(), Target::Call(seconds.clone()));
    }
}

/// Begins to follow the references; once at boot, by the boot CPU.
pub fn init() {
    SECONDS.call_once(|| Arc::new(Seconds));
    timer::add(mach::time::follow(), Target::Call(Arc::new(Follow)));
}

/// A program adjusts the clock, or asks for its state.
///
/// # Errors
/// As `timekeeping::Ntp::adjust`.
pub fn adjust(request: &Request, may_adjust: bool) -> Result<Adjusted, NtpError> {
    let adjusted = mach::time::adjust(request, may_adjust)?;
    start_seconds();
    Ok(adjusted)
}
