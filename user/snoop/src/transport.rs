//! TCP, UDP and ICMP of both families.

use crate::bytes::{u8_at, u16_at, u32_at};
use crate::dissection::Dissection;
use crate::layer::Layer;

const ICMP: u8 = 1;
const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMPV6: u8 = 58;

const TCP_BYTES_MIN: usize = 20;

/// TCP's flags by bit, in the order in which they are shown.
const FLAGS: [(u8, &str); 8] = [
    (0x01, "Fin"),
    (0x02, "Syn"),
    (0x04, "Rst"),
    (0x08, "Push"),
    (0x20, "Urg"),
    (0x40, "Ece"),
    (0x80, "Cwr"),
    (0x10, "Ack"),
];
const ACK: u8 = 0x10;

/// IANA's name of a protocol, where it is one of these.
pub fn name(protocol: u8) -> String {
    let name = match protocol {
        ICMP => "ICMP",
        TCP => "TCP",
        UDP => "UDP",
        ICMPV6 => "ICMPv6",
        _ => "unknown",
    };
    format!("{protocol} ({name})")
}

/// Reads the header of a transport whose packet has `len` bytes, which may not all be here.
pub fn dissect(all: &mut Dissection, protocol: u8, bytes: &[u8], len: usize) {
    let (read, name): (Option<Layer>, &'static str) = match protocol {
        TCP => (tcp(bytes, len), "TCP"),
        UDP => (udp(bytes), "UDP"),
        ICMP => (icmp(bytes), "ICMP"),
        ICMPV6 => (icmpv6(bytes), "ICMPv6"),
        _ => return,
    };
    all.push(read.unwrap_or_else(|| Layer::malformed(name, name, bytes.len())));
}

fn tcp(bytes: &[u8], len: usize) -> Option<Layer> {
    let (from, to) = (u16_at(bytes, 0)?, u16_at(bytes, 2)?);
    let (sequence, ack) = (u32_at(bytes, 4)?, u32_at(bytes, 8)?);
    let header_bytes = usize::from(u8_at(bytes, 12)? >> 4) * 4;
    let (bits, window) = (u8_at(bytes, 13)?, u16_at(bytes, 14)?);
    let checksum = u16_at(bytes, 16)?;
    if header_bytes < TCP_BYTES_MIN {
        return None;
    }
    let payload = len.saturating_sub(header_bytes);
    let set = FLAGS.iter().filter(|(bit, _)| bits & bit != 0);
    let names: Vec<&str> = set.map(|(_, name)| *name).collect();
    let mut summary = format!("D={to} S={from}");
    for (bit, name) in FLAGS.iter().filter(|(bit, _)| bits & bit != 0) {
        match *bit {
            ACK => summary += &format!(" Ack={ack}"),
            _ => summary += &format!(" {name}"),
        }
    }
    summary += &format!(" Seq={sequence} Len={payload} Win={window}");
    let layer = Layer::new("TCP", "TCP")
        .field("Source port", from)
        .field("Destination port", to)
        .field("Sequence number", sequence)
        .field("Acknowledgement number", ack)
        .field("Data offset", format!("{header_bytes} bytes"))
        .field("Flags", format!("0x{bits:02x} ({})", names.join(" ")))
        .field("Window", window)
        .field("Checksum", format!("0x{checksum:04x}"))
        .field("Data", format!("{payload} bytes"));
    Some(layer.summed_up(summary))
}

fn udp(bytes: &[u8]) -> Option<Layer> {
    let (from, to) = (u16_at(bytes, 0)?, u16_at(bytes, 2)?);
    let (len, checksum) = (u16_at(bytes, 4)?, u16_at(bytes, 6)?);
    let layer = Layer::new("UDP", "UDP")
        .field("Source port", from)
        .field("Destination port", to)
        .field("Length", len)
        .field("Checksum", format!("{checksum:04X}"));
    Some(layer.summed_up(format!("D={to} S={from} LEN={len}")))
}

fn icmp(bytes: &[u8]) -> Option<Layer> {
    let (kind, code) = (u8_at(bytes, 0)?, u8_at(bytes, 1)?);
    let what = match kind {
        0 => "Echo reply",
        3 => "Destination unreachable",
        5 => "Redirect",
        8 => "Echo request",
        11 => "Time exceeded",
        12 => "Parameter problem",
        _ => "unknown type",
    };
    let echo = matches!(kind, 0 | 8);
    message("ICMP", bytes, (kind, code, what), echo)
}

fn icmpv6(bytes: &[u8]) -> Option<Layer> {
    let (kind, code) = (u8_at(bytes, 0)?, u8_at(bytes, 1)?);
    let what = match kind {
        1 => "Destination unreachable",
        2 => "Packet too big",
        3 => "Time exceeded",
        4 => "Parameter problem",
        128 => "Echo request",
        129 => "Echo reply",
        133 => "Router solicitation",
        134 => "Router advertisement",
        135 => "Neighbor solicitation",
        136 => "Neighbor advertisement",
        137 => "Redirect",
        143 => "Multicast listener report",
        _ => "unknown type",
    };
    let echo = matches!(kind, 128 | 129);
    message("ICMPv6", bytes, (kind, code, what), echo)
}

fn message(
    name: &'static str,
    bytes: &[u8],
    (kind, code, what): (u8, u8, &str),
    is_echo: bool,
) -> Option<Layer> {
    let mut summary = what.to_string();
    if is_echo {
        let (ident, sequence) = (u16_at(bytes, 4)?, u16_at(bytes, 6)?);
        summary += &format!(" (ID: {ident} Sequence number: {sequence})");
    } else if code != 0 {
        summary += &format!(" (code {code})");
    }
    let layer = Layer::new(name, name)
        .field("Type", format!("{kind} ({what})"))
        .field("Code", code)
        .field("Checksum", format!("{:04x}", u16_at(bytes, 2)?));
    Some(layer.summed_up(summary))
}
