//! /proc/resched: how long a CPU is in the kernel between two chances to reschedule
//! (`sched::preempt_off`).
//!
//! The first line says how many ticks there are in a second; then, for each class of lengths
//! that occurred, its upper end in ticks and how many there were; then a line for each cause
//! of long ones with the longest. The file is not Linux's.

use core::fmt::{Result, Write};

use sched::preempt_off;
use vfs::pseudo::Text;

/// Writes the file.
pub fn generate(text: &mut Text) -> Result {
    writeln!(text, "hertz {}", mach::time::cycles_per_second())?;
    let classes = preempt_off::histogram().into_iter().enumerate();
    for (class, count) in classes.filter(|(_, count)| *count != 0) {
        writeln!(text, "below {} {count}", 1_u64 << (class + 1))?;
    }
    for (cause, ticks) in preempt_off::longest() {
        writeln!(text, "longest {ticks} {cause}")?;
    }
    Ok(())
}
