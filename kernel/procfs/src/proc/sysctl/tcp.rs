//! `net.ipv4.tcp_*`: TCP over both families. `docs/sysctl.md` has the table.

use core::fmt::{Result, Write};

use inet::{Algorithm, Ecn, Reuse, SynCookies};
use sync::Error;

use super::form::{self, INT_MAX, choice, fixed, number, switch};
use super::memory;
use vfs::pseudo::{Entry, Text};

/// Bytes that a buffer is left with when memory is short; here, none is made smaller.
const BUFFER_MIN: u64 = 4096;
/// Seconds that fit into Linux's jiffies at 1000 Hz.
const SECONDS_MAX: u64 = INT_MAX / 1000;
/// Seconds that TCP_KEEPIDLE and TCP_KEEPINTVL take.
const KEEP_SECONDS_MAX: u64 = 32_767;
/// Timeouts that TCP_SYNCNT takes.
const SYN_TIMEOUTS_MAX: u64 = 127;
/// Milliseconds that `tcp_tw_reuse_delay` takes.
const REUSE_DELAY_MS_MAX: u64 = 60_000;

/// The table's lines.
pub const ENTRIES: &[Entry] = &[
    // Connections that are over.
    number!("ipv4/tcp_max_tw_buckets", 0..=INT_MAX, time_waits_max),
    choice!(
        "ipv4/tcp_tw_reuse",
        [Reuse::Never, Reuse::All, Reuse::SameHost],
        time_wait.reuse
    ),
    number!(
        "ipv4/tcp_tw_reuse_delay",
        1..=REUSE_DELAY_MS_MAX,
        time_wait.reuse_delay_ms
    ),
    switch!("ipv4/tcp_rfc1337", time_wait.rfc1337),
    number!("ipv4/tcp_max_orphans", 0..=INT_MAX, orphans_max),
    number!(
        "ipv4/tcp_fin_timeout",
        0..=SECONDS_MAX,
        retry_limits.fin_wait_secs
    ),
    // Connections that begin.
    number!("ipv4/tcp_max_syn_backlog", 0..=INT_MAX, half_open_max),
    choice!(
        "ipv4/tcp_syncookies",
        [SynCookies::Never, SynCookies::WhenFull, SynCookies::Always],
        syn_cookies
    ),
    fixed!("ipv4/tcp_abort_on_overflow", 0),
    fixed!("ipv4/tcp_fastopen", 0),
    switch!("ipv4/tcp_sack", offers.sack),
    switch!("ipv4/tcp_timestamps", offers.timestamps),
    switch!("ipv4/tcp_window_scaling", offers.window_scaling),
    choice!("ipv4/tcp_ecn", [Ecn::Off, Ecn::Ask, Ecn::Accept], ecn),
    // Peers that do not answer.
    number!("ipv4/tcp_retries2", 0..=255, retry_limits.timeouts),
    number!(
        "ipv4/tcp_syn_retries",
        1..=SYN_TIMEOUTS_MAX,
        retry_limits.syn_timeouts
    ),
    number!(
        "ipv4/tcp_synack_retries",
        0..=255,
        retry_limits.syn_ack_timeouts
    ),
    number!(
        "ipv4/tcp_orphan_retries",
        1..=255,
        retry_limits.orphan_timeouts
    ),
    number!(
        "ipv4/tcp_keepalive_time",
        1..=KEEP_SECONDS_MAX,
        stream.keep_idle_secs
    ),
    number!(
        "ipv4/tcp_keepalive_intvl",
        1..=KEEP_SECONDS_MAX,
        stream.keep_interval_secs
    ),
    number!("ipv4/tcp_keepalive_probes", 1..=127, stream.keep_count),
    // What is sent, and how much of it.
    number!(
        "ipv4/tcp_challenge_ack_limit",
        0..=INT_MAX,
        challenges_per_second
    ),
    fixed!("ipv4/tcp_mtu_probing", 0),
    switch!("ipv4/tcp_moderate_rcvbuf", stream.is_recv_tuned),
    Entry {
        path: "sys/net/ipv4/tcp_mem",
        generate: |text| memory::show(text, net::current_stack().settings().tcp_memory),
        store: Some(|bytes| memory::set(bytes, |config| &mut config.tcp_memory)),
    },
    Entry {
        path: "sys/net/ipv4/udp_mem",
        generate: |text| memory::show(text, net::current_stack().settings().udp_memory),
        store: Some(|bytes| memory::set(bytes, |config| &mut config.udp_memory)),
    },
    Entry {
        path: "sys/net/ipv4/tcp_rmem",
        generate: receive_buffers,
        store: Some(set_receive_buffers),
    },
    Entry {
        path: "sys/net/ipv4/tcp_wmem",
        generate: send_buffers,
        store: Some(set_send_buffers),
    },
    Entry {
        path: "sys/net/ipv4/tcp_congestion_control",
        generate: |text| {
            writeln!(
                text,
                "{}",
                net::current_stack().settings().stream.congestion.name()
            )
        },
        store: Some(set_congestion),
    },
    Entry::new("sys/net/ipv4/tcp_available_congestion_control", algorithms),
    Entry::new("sys/net/ipv4/tcp_allowed_congestion_control", algorithms),
];

fn receive_buffers(text: &mut Text) -> Result {
    let config = net::current_stack().settings();
    let (default, most) = (config.stream.recv_buffer, config.recv_buffer_max);
    writeln!(text, "{BUFFER_MIN}\t{default}\t{most}")
}

fn send_buffers(text: &mut Text) -> Result {
    let config = net::current_stack().settings();
    let (default, most) = (config.stream.send_buffer, config.send_buffer_max);
    writeln!(text, "{BUFFER_MIN}\t{default}\t{most}")
}

/// The default and the largest size, behind the least, which stays.
fn buffer_sizes(bytes: &[u8]) -> sync::Result<(u32, u32)> {
    let [least, default, most] = form::parse_all(bytes)?;
    if least != BUFFER_MIN || default > most {
        return Err(Error::Invalid);
    }
    let default = form::within(default, BUFFER_MIN..=INT_MAX)?;
    Ok((default, form::within(most, BUFFER_MIN..=INT_MAX)?))
}

fn set_receive_buffers(bytes: &[u8]) -> sync::Result<()> {
    let (default, most) = buffer_sizes(bytes)?;
    net::current_stack().change_settings(|config| {
        (config.stream.recv_buffer, config.recv_buffer_max) = (default, most);
    });
    Ok(())
}

fn set_send_buffers(bytes: &[u8]) -> sync::Result<()> {
    let (default, most) = buffer_sizes(bytes)?;
    net::current_stack().change_settings(|config| {
        (config.stream.send_buffer, config.send_buffer_max) = (default, most);
    });
    Ok(())
}

fn algorithms(text: &mut Text) -> Result {
    let [first, rest @ ..] = Algorithm::ALL;
    write!(text, "{}", first.name())?;
    let mut rest = rest.into_iter();
    rest.try_for_each(|algorithm| write!(text, " {}", algorithm.name()))?;
    writeln!(text)
}

/// Errors: `NotFound` for a name that is not among the available ones, as Linux has it.
fn set_congestion(bytes: &[u8]) -> sync::Result<()> {
    let algorithm = Algorithm::named(form::text(bytes)?).ok_or(Error::NotFound)?;
    net::current_stack().change_settings(|config| config.stream.congestion = algorithm);
    Ok(())
}
