//! `netstat -s`: what the protocols have counted, first since the start, then by intervals.

use std::fmt::Write;

use super::Flags;
use super::counts::Counts;
use crate::{Files, World};

/// What a figure is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// It only grows; an interval shows by how much.
    Counter,
    /// It is as it is.
    Gauge,
}

use Kind::{Counter, Gauge};

/// illumos' name; where Linux has it: section and name.
type Row = (&'static str, &'static str, &'static str, Kind);

/// In the order in which illumos prints them.
const TCP: &[Row] = &[
    ("tcpRtoAlgorithm", "Tcp", "RtoAlgorithm", Gauge),
    ("tcpRtoMin", "Tcp", "RtoMin", Gauge),
    ("tcpRtoMax", "Tcp", "RtoMax", Gauge),
    ("tcpMaxConn", "Tcp", "MaxConn", Gauge),
    ("tcpActiveOpens", "Tcp", "ActiveOpens", Counter),
    ("tcpPassiveOpens", "Tcp", "PassiveOpens", Counter),
    ("tcpAttemptFails", "Tcp", "AttemptFails", Counter),
    ("tcpEstabResets", "Tcp", "EstabResets", Counter),
    ("tcpCurrEstab", "Tcp", "CurrEstab", Gauge),
    ("tcpOutSegs", "Tcp", "OutSegs", Counter),
    ("tcpRetransSegs", "Tcp", "RetransSegs", Counter),
    ("tcpOutRsts", "Tcp", "OutRsts", Counter),
    ("tcpOutFastRetrans", "TcpExt", "TCPFastRetrans", Counter),
    ("tcpInSegs", "Tcp", "InSegs", Counter),
    ("tcpInErrs", "Tcp", "InErrs", Counter),
    ("tcpInUnorderSegs", "TcpExt", "TCPOFOQueue", Counter),
    ("tcpTimRetrans", "TcpExt", "TCPTimeouts", Counter),
    ("tcpTimRetransDrop", "TcpExt", "TCPAbortOnTimeout", Counter),
    ("tcpTimKeepaliveProbe", "TcpExt", "TCPKeepAlive", Counter),
    ("tcpListenDrop", "TcpExt", "ListenOverflows", Counter),
    ("tcpListenDropQ0", "TcpExt", "TCPReqQFullDrop", Counter),
];

const UDP: &[Row] = &[
    ("udpInDatagrams", "Udp", "InDatagrams", Counter),
    ("udpInErrors", "Udp", "InErrors", Counter),
    ("udpOutDatagrams", "Udp", "OutDatagrams", Counter),
    ("udpNoPorts", "Udp", "NoPorts", Counter),
    ("udpInOverflows", "Udp", "RcvbufErrors", Counter),
];

const IP: &[Row] = &[
    ("ipForwarding", "Ip", "Forwarding", Gauge),
    ("ipDefaultTTL", "Ip", "DefaultTTL", Gauge),
    ("ipInReceives", "Ip", "InReceives", Counter),
    ("ipInHdrErrors", "Ip", "InHdrErrors", Counter),
    ("ipInAddrErrors", "Ip", "InAddrErrors", Counter),
    ("ipInUnknownProtos", "Ip", "InUnknownProtos", Counter),
    ("ipInDiscards", "Ip", "InDiscards", Counter),
    ("ipInDelivers", "Ip", "InDelivers", Counter),
    ("ipOutRequests", "Ip", "OutRequests", Counter),
    ("ipOutDiscards", "Ip", "OutDiscards", Counter),
    ("ipOutNoRoutes", "Ip", "OutNoRoutes", Counter),
    ("ipReasmTimeout", "Ip", "ReasmTimeout", Counter),
    ("ipReasmReqds", "Ip", "ReasmReqds", Counter),
    ("ipReasmOKs", "Ip", "ReasmOKs", Counter),
    ("ipReasmFails", "Ip", "ReasmFails", Counter),
    ("ipFragOKs", "Ip", "FragOKs", Counter),
    ("ipFragFails", "Ip", "FragFails", Counter),
    ("ipFragCreates", "Ip", "FragCreates", Counter),
];

const ICMP: &[Row] = &[
    ("icmpInMsgs", "Icmp", "InMsgs", Counter),
    ("icmpInErrors", "Icmp", "InErrors", Counter),
    ("icmpInDestUnreachs", "Icmp", "InDestUnreachs", Counter),
    ("icmpInEchos", "Icmp", "InEchos", Counter),
    ("icmpInEchoReps", "Icmp", "InEchoReps", Counter),
    ("icmpOutMsgs", "Icmp", "OutMsgs", Counter),
    ("icmpOutErrors", "Icmp", "OutErrors", Counter),
    ("icmpOutDestUnreachs", "Icmp", "OutDestUnreachs", Counter),
    ("icmpOutEchoReps", "Icmp", "OutEchoReps", Counter),
];

/// The protocol's name in `-P`, its head, its figures.
const PROTOCOLS: [(&str, &str, &[Row]); 4] = [
    ("udp", "UDP", UDP),
    ("tcp", "TCP", TCP),
    ("ip", "IPv4", IP),
    ("icmp", "ICMPv4", ICMP),
];

/// Of IPv6 all names are told, as they come: the protocol's name in `-P`, its head, the
/// section, and what is in front of each name.
const PROTOCOLS6: [(&str, &str, &str, &str); 2] = [
    ("ipv6", "IPv6", "Ip6", "ipv6"),
    ("icmpv6", "ICMPv6", "Icmp6", "icmp6"),
];

/// Figures by name.
type Figures = Vec<(String, i64)>;

/// What to show of the rows: the values, or by how much they have grown.
fn figures(rows: &[Row], now: &Counts, before: &Counts) -> Figures {
    let of = |&(name, section, linux, kind): &Row| {
        let value = now.get(section, linux)?;
        let base = before.get(section, linux).filter(|_| kind == Counter);
        Some((name.to_string(), value - base.unwrap_or(0)))
    };
    rows.iter().filter_map(of).collect()
}

fn figures6(section: &str, prefix: &str, now: &Counts, before: &Counts) -> Figures {
    let of = |name: &str| {
        let base = before.get(section, name).unwrap_or(0);
        let value = now.get(section, name)?;
        Some((format!("{prefix}{name}"), value - base))
    };
    now.names(section).filter_map(of).collect()
}

/// A protocol's figures, two a line.
fn block(head: &str, figures: &Figures, text: &mut String) {
    for (index, line) in figures.chunks(2).enumerate() {
        text.push_str(if index == 0 { head } else { "" });
        for (name, value) in line {
            _ = write!(text, "\t{name:<20}={value:6}");
        }
        text.push('\n');
    }
    if !figures.is_empty() {
        text.push('\n');
    }
}

fn report(flags: &Flags, now: &Counts, before: &Counts) -> String {
    let mut text = String::new();
    for (name, head, rows) in PROTOCOLS {
        if flags.wants(name) {
            block(head, &figures(rows, now, before), &mut text);
        }
    }
    for (name, head, section, prefix) in PROTOCOLS6 {
        if flags.wants(name) {
            block(head, &figures6(section, prefix, now, before), &mut text);
        }
    }
    text
}

/// All figures of IPv4's protocols: the protocol, illumos' name without it, the value.
pub fn mib(files: &mut dyn Files) -> Result<Vec<(&'static str, String, i64)>, String> {
    let now = Counts::read(files)?;
    let of = |&(protocol, _, rows): &(&'static str, &str, &[Row])| {
        let figures = figures(rows, &now, &Counts::default());
        figures.into_iter().map(move |(name, value)| {
            let bare = name.strip_prefix(protocol).unwrap_or(&name);
            let (head, tail) = bare.split_at(1);
            (protocol, head.to_lowercase() + tail, value)
        })
    };
    Ok(PROTOCOLS.iter().flat_map(of).collect())
}

/// Shows what was counted since the start, then in each interval.
pub fn watch(flags: &Flags, world: &mut World<'_>) -> Result<(), String> {
    let mut before = Counts::default();
    let mut reports = 0;
    loop {
        let now = Counts::read(world.files)?;
        reports += 1;
        let goes_on = world.console.print(&report(flags, &now, &before));
        let Some(seconds) = flags.interval else {
            return Ok(());
        };
        if !goes_on || flags.count == Some(reports) || !world.console.wait(seconds) {
            return Ok(());
        }
        before = now;
    }
}
