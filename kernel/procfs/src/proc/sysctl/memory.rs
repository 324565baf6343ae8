//! `tcp_mem` and `udp_mem`: how much packet memory a protocol may hold, in pages.

use core::fmt::{self, Write};

use base::PAGE_BYTES;
use inet::{Config, MemoryLimits};
use sync::Result;

use super::form::{self, INT_MAX};
use vfs::pseudo::Text;

/// The pages below which pressure ends, above which it begins, and that there are at most.
pub fn show(text: &mut Text, limits: MemoryLimits) -> fmt::Result {
    let [low, pressure, high] =
        [limits.low, limits.pressure, limits.high].map(|bytes| bytes / PAGE_BYTES);
    writeln!(text, "{low}\t{pressure}\t{high}")
}

/// Changes them.
///
/// Errors: `Invalid` for what are no three numbers.
pub fn set(bytes: &[u8], of: impl Fn(&mut Config) -> &mut MemoryLimits) -> Result<()> {
    let pages: [u64; 3] = form::parse_all(bytes)?;
    let mut limits = [0; 3];
    for (limit, pages) in limits.iter_mut().zip(pages) {
        *limit = form::within::<usize>(pages, 0..=INT_MAX)? * PAGE_BYTES;
    }
    let [low, pressure, high] = limits;
    net::current_stack().change_settings(|config| {
        *of(config) = MemoryLimits {
            low,
            pressure,
            high,
        };
    });
    Ok(())
}
