//! `net.ipv6`.

use core::fmt::Write;

use super::form::{self, fixed, number, switch};
use net::{self, Config6};
use vfs::pseudo::Entry;

/// Whether the card goes without IPv6. On again, it has what routers announce.
macro_rules! disable {
    ($path:literal) => {
        Entry {
            path: concat!("sys/net/", $path),
            generate: |text| writeln!(text, "{}", u8::from(!net::current_stack().has_ipv6())),
            store: Some(disable),
        }
    };
}

/// The table's lines.
pub const ENTRIES: &[Entry] = &[
    Entry {
        path: "sys/net/ipv6/bindv6only",
        generate: |text| {
            writeln!(
                text,
                "{}",
                u8::from(net::current_stack().settings().stream.v6_only)
            )
        },
        store: Some(bind_only),
    },
    switch!("ipv6/icmp/echo_ignore_all", ignores_echo_v6),
    disable!("ipv6/conf/all/disable_ipv6"),
    disable!("ipv6/conf/eth0/disable_ipv6"),
    fixed!("ipv6/conf/default/disable_ipv6", 0),
    fixed!("ipv6/conf/lo/disable_ipv6", 0),
    fixed!("ipv6/conf/all/forwarding", 0),
    number!("ipv6/conf/all/hop_limit", 1..=255, hop_limit_v6),
    number!("ipv6/conf/default/hop_limit", 1..=255, hop_limit_v6),
    number!("ipv6/conf/eth0/hop_limit", 1..=255, hop_limit_v6),
];

/// Whether sockets bound to `::` leave IPv4 alone, of both transports.
fn bind_only(bytes: &[u8]) -> sync::Result<()> {
    let is_on = form::parse::<u8>(bytes, 0..=1)? == 1;
    net::current_stack().change_settings(|config| {
        (config.stream.v6_only, config.datagram.v6_only) = (is_on, is_on);
    });
    Ok(())
}

fn disable(bytes: &[u8]) -> sync::Result<()> {
    let is_on = form::parse::<u8>(bytes, 0..=1)? == 0;
    match is_on {
        false => net::configure6(&net::current_stack(), Config6::None),
        true if !net::current_stack().has_ipv6() => {
            net::configure6(&net::current_stack(), Config6::Auto)
        }
        true => {}
    }
    Ok(())
}
