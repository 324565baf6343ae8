//! /proc/net/snmp and /proc/net/netstat: what the protocols have counted, in Linux's words.
//!
//! Tools such as `sar` read `snmp` by position, so it has all columns of Linux 6.1, and a newer
//! one at the end of its line; what we do not count, or what cannot happen here, shows as 0.

use alloc::vec::Vec;
use core::fmt::{Result, Write};

use inet::{ConnectionEntry, Count, DropReason, State, Stats};

use vfs::pseudo::{Entry, Text};

/// The table's lines.
pub const ENTRIES: &[Entry] = &[
    Entry::new("net/netstat", netstat),
    Entry::new("net/snmp", snmp),
];

/// A name and its value.
type Column = (&'static str, u64);

/// What Linux says where there is no limit: -1.
const NO_LIMIT: u64 = u64::MAX;
/// That we do not forward (RFC 4293).
const NOT_FORWARDING: u64 = 2;

/// A line of names and a line of numbers.
fn rows(text: &mut Text, family: &str, columns: &[Column]) -> Result {
    write!(text, "{family}:")?;
    columns
        .iter()
        .try_for_each(|(name, _)| write!(text, " {name}"))?;
    write!(text, "\n{family}:")?;
    columns
        .iter()
        .try_for_each(|(_, value)| write!(text, " {}", *value as i64))?;
    writeln!(text)
}

/// Sets the values of some columns of a line.
fn fill<const N: usize>(names: [&'static str; N], values: &[Column]) -> [Column; N] {
    names.map(|name| {
        let value = values.iter().find(|(of, _)| *of == name);
        (name, value.map_or(0, |(_, value)| *value))
    })
}

const IP: [&str; 19] = [
    "Forwarding",
    "DefaultTTL",
    "InReceives",
    "InHdrErrors",
    "InAddrErrors",
    "ForwDatagrams",
    "InUnknownProtos",
    "InDiscards",
    "InDelivers",
    "OutRequests",
    "OutDiscards",
    "OutNoRoutes",
    "ReasmTimeout",
    "ReasmReqds",
    "ReasmOKs",
    "ReasmFails",
    "FragOKs",
    "FragFails",
    "FragCreates",
];

fn ip(stats: &Stats) -> [Column; 19] {
    let count = |what| stats.counts.get(what);
    let dropped = |why| stats.drops.get(why);
    let delivered = count(Count::SegmentsIn) + count(Count::UdpIn) + count(Count::IcmpIn);
    let values = [
        ("Forwarding", NOT_FORWARDING),
        (
            "DefaultTTL",
            net::current_stack().settings().hop_limit.into(),
        ),
        (
            "InReceives",
            count(Count::FramesIn) + count(Count::Loopback),
        ),
        ("InHdrErrors", dropped(DropReason::Malformed)),
        ("InAddrErrors", dropped(DropReason::WrongAddress)),
        ("InUnknownProtos", dropped(DropReason::UnknownProtocol)),
        ("InDiscards", dropped(DropReason::NoBuffer)),
        ("InDelivers", delivered),
        (
            "OutRequests",
            count(Count::FramesOut) + count(Count::Loopback),
        ),
        ("OutDiscards", dropped(DropReason::NeighborUnresolved)),
        ("OutNoRoutes", dropped(DropReason::NoRoute)),
        ("ReasmFails", dropped(DropReason::ReassemblyLimit)),
    ];
    fill(IP, &values)
}

const ICMP: [&str; 28] = [
    "InMsgs",
    "InErrors",
    "InCsumErrors",
    "InDestUnreachs",
    "InTimeExcds",
    "InParmProbs",
    "InSrcQuenchs",
    "InRedirects",
    "InEchos",
    "InEchoReps",
    "InTimestamps",
    "InTimestampReps",
    "InAddrMasks",
    "InAddrMaskReps",
    "OutMsgs",
    "OutErrors",
    "OutDestUnreachs",
    "OutTimeExcds",
    "OutParmProbs",
    "OutSrcQuenchs",
    "OutRedirects",
    "OutEchos",
    "OutEchoReps",
    "OutTimestamps",
    "OutTimestampReps",
    "OutAddrMasks",
    "OutAddrMaskReps",
    "OutRateLimitGlobal",
];

/// Each echo request that is answered, or were there not so many, was one that came in; all
/// errors that we send say that something cannot be reached.
fn icmp(stats: &Stats) -> [Column; 28] {
    let count = |what| stats.counts.get(what);
    let (replies, errors) = (count(Count::EchoReplies), count(Count::IcmpErrorsOut));
    let dropped = |why| stats.drops.get(why);
    let unanswered = dropped(DropReason::EchoLimited);
    let values = [
        ("InMsgs", count(Count::IcmpIn)),
        ("InEchos", replies + unanswered),
        ("OutMsgs", replies + errors),
        (
            "OutRateLimitGlobal",
            dropped(DropReason::IcmpLimited) + unanswered,
        ),
        ("OutDestUnreachs", errors),
        ("OutEchoReps", replies),
    ];
    fill(ICMP, &values)
}

const TCP: [&str; 15] = [
    "RtoAlgorithm",
    "RtoMin",
    "RtoMax",
    "MaxConn",
    "ActiveOpens",
    "PassiveOpens",
    "AttemptFails",
    "EstabResets",
    "CurrEstab",
    "InSegs",
    "OutSegs",
    "RetransSegs",
    "InErrs",
    "OutRsts",
    "InCsumErrors",
];

fn tcp(stats: &Stats) -> [Column; 15] {
    let count = |what| stats.counts.get(what);
    let damaged = stats.drops.get(DropReason::BadChecksum);
    let values = [
        ("RtoAlgorithm", 1),
        ("RtoMin", 200),
        ("RtoMax", 120_000),
        ("MaxConn", NO_LIMIT),
        ("ActiveOpens", count(Count::ActiveOpens)),
        ("PassiveOpens", count(Count::PassiveOpens)),
        ("AttemptFails", count(Count::EmbryonicResets)),
        ("EstabResets", count(Count::ResetsIn)),
        ("CurrEstab", established()),
        ("InSegs", count(Count::SegmentsIn)),
        ("OutSegs", count(Count::SegmentsOut)),
        ("RetransSegs", count(Count::Retransmits)),
        ("InErrs", damaged),
        ("OutRsts", count(Count::ResetsOut)),
        ("InCsumErrors", damaged),
    ];
    fill(TCP, &values)
}

/// Connections through which data may come or go.
fn established() -> u64 {
    let is_open =
        |entry: &ConnectionEntry| matches!(entry.state, State::Established | State::CloseWait);
    let open = net::current_stack().each_shard(|stack| stack.connections().filter(is_open).count());
    open.iter().sum::<usize>() as u64
}

const UDP: [&str; 9] = [
    "InDatagrams",
    "NoPorts",
    "InErrors",
    "OutDatagrams",
    "RcvbufErrors",
    "SndbufErrors",
    "InCsumErrors",
    "IgnoredMulti",
    "MemErrors",
];

fn udp(stats: &Stats) -> [Column; 9] {
    let count = |what| stats.counts.get(what);
    let full = stats.drops.get(DropReason::QueueFull);
    let tight = stats.drops.get(DropReason::UdpMemoryTight);
    let values = [
        ("InDatagrams", count(Count::UdpIn)),
        ("NoPorts", stats.drops.get(DropReason::NoSocket)),
        ("InErrors", full + tight),
        ("OutDatagrams", count(Count::UdpOut)),
        ("RcvbufErrors", full),
        ("MemErrors", tight),
    ];
    fill(UDP, &values)
}

fn snmp(text: &mut Text) -> Result {
    let stats = net::current_stack().stats();
    rows(text, "Ip", &ip(&stats))?;
    rows(text, "Icmp", &icmp(&stats))?;
    rows(text, "Tcp", &tcp(&stats))?;
    rows(text, "Udp", &udp(&stats))?;
    rows(text, "UdpLite", &fill(UDP, &[]))
}

fn netstat(text: &mut Text) -> Result {
    let stats = net::current_stack().stats();
    rows(text, "TcpExt", &stats.tcp_ext().collect::<Vec<_>>())?;
    let octets = [
        ("InOctets", stats.counts.get(Count::BytesIn)),
        ("OutOctets", stats.counts.get(Count::BytesOut)),
        ("InCEPkts", stats.counts.get(Count::MarksIn)),
    ];
    rows(text, "IpExt", &octets)
}
