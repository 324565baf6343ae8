//! `net.sietch`: settings that Linux has no name for. `tcp_time_wait_interval` is illumos'.

use core::fmt::Write;

use super::form::{self, fixed, switch};
use vfs::pseudo::Entry;

/// Milliseconds of illumos' shortest and longest wait.
const WAIT_MS_MIN: u64 = 1000;
const WAIT_MS_MAX: u64 = 600_000;

/// The table's lines.
pub const ENTRIES: &[Entry] = &[
    Entry {
        path: "sys/net/sietch/tcp_time_wait_interval",
        generate: |text| {
            writeln!(
                text,
                "{}",
                u64::from(net::current_stack().settings().time_wait.secs) * 1000
            )
        },
        store: Some(set_wait),
    },
    switch!("sietch/tcp_time_wait_same_host", time_wait.same_host_waits),
    fixed!(
        "sietch/tcp_clumsy",
        u64::from(net::current_stack().settings().time_wait.is_clumsy)
    ),
];

/// Whole seconds only: that is how exact waits are.
fn set_wait(bytes: &[u8]) -> sync::Result<()> {
    let millis: u64 = form::parse(bytes, WAIT_MS_MIN..=WAIT_MS_MAX)?;
    if !millis.is_multiple_of(1000) {
        return Err(sync::Error::Invalid);
    }
    let secs = form::within(millis / 1000, 1..=WAIT_MS_MAX / 1000)?;
    net::current_stack().change_settings(|config| config.time_wait.secs = secs);
    Ok(())
}
