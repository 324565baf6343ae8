//! Frames by hand, as `send_frame` takes them: in hexadecimal, from the Ethernet header on.

/// The last byte of the address of the VNIC that sends; its others are 2:0:0:0:0.
pub const VNIC: u8 = 0x51;
/// The same of the VNIC that a DHCP server has.
pub const SERVER: u8 = 0x52;
/// A station that nobody is.
const ABSENT: u8 = 0x99;
const BROADCAST: &str = "ffffffffffff";
const DISCARD: [u8; 2] = [0, 9];

fn station(last: u8) -> String {
    format!("0200000000{last:02x}")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A datagram with so much payload to the discard port of nobody, without a checksum of its own.
pub fn udp(src: u8, from: [u8; 4], payload: usize) -> String {
    let ports = [[0x03, 0xe8], DISCARD];
    let to = [192, 168, 10, 1];
    ip_udp([src, ABSENT], from, to, ports, &vec![0; payload])
}

/// LLDP, which is not IP.
pub fn lldp() -> String {
    format!(
        "{}{}88cc{}",
        station(ABSENT),
        station(VNIC),
        "00".repeat(46)
    )
}

/// Who has 192.168.10.1? The VNIC says that it has `host` (RFC 826).
pub fn arp(host: [u8; 4]) -> String {
    let vnic = station(VNIC);
    let head = format!("{BROADCAST}{vnic}08060001080006040001{vnic}");
    format!(
        "{head}{}000000000000c0a80a01{}",
        hex(&host),
        "00".repeat(18)
    )
}

fn ip_udp(
    [src, dst]: [u8; 2],
    from: [u8; 4],
    to: [u8; 4],
    ports: [[u8; 2]; 2],
    payload: &[u8],
) -> String {
    let len = (payload.len() + 28) as u16;
    let mut packet = vec![0x45, 0];
    packet.extend(len.to_be_bytes());
    packet.extend([0, 0, 0, 0, 64, 17, 0, 0]);
    packet.extend(from);
    packet.extend(to);
    let words = packet.chunks(2);
    let sum: u32 = words
        .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])))
        .sum();
    let folded = !((sum & 0xffff) + (sum >> 16)) as u16;
    packet[10..12].copy_from_slice(&folded.to_be_bytes());
    packet.extend(ports.concat());
    packet.extend((len - 20).to_be_bytes());
    packet.extend([0, 0]);
    packet.extend(payload);
    let to = match to {
        [255, 255, 255, 255] => BROADCAST.into(),
        _ => station(dst),
    };
    format!("{to}{}0800{}", station(src), hex(&packet))
}

/// A message of DHCP (RFC 2131).
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Dhcp {
    Discover = 1,
    Offer = 2,
    Request = 3,
    Ack = 5,
    Release = 7,
}

/// The address that the server leases.
pub const LEASED: [u8; 4] = [192, 168, 10, 50];
const LEASER: [u8; 4] = [192, 168, 10, 1];

/// A message between the VNIC and the server.
pub fn dhcp(message: Dhcp) -> String {
    let is_answer = matches!(message, Dhcp::Offer | Dhcp::Ack);
    let payload = dhcp_payload(message, VNIC);
    let (client, server) = ([0, 68], [0, 67]);
    match (is_answer, message) {
        (true, _) => ip_udp([SERVER, VNIC], LEASER, LEASED, [server, client], &payload),
        (_, Dhcp::Release) => ip_udp([VNIC, SERVER], LEASED, LEASER, [client, server], &payload),
        _ => ip_udp([VNIC, SERVER], [0; 4], [255; 4], [client, server], &payload),
    }
}

/// A DHCPDISCOVER of the VNIC with another station's hardware address.
pub fn dhcp_wrong() -> String {
    let payload = dhcp_payload(Dhcp::Discover, SERVER);
    ip_udp(
        [VNIC, SERVER],
        [0; 4],
        [255; 4],
        [[0, 68], [0, 67]],
        &payload,
    )
}

fn dhcp_payload(message: Dhcp, chaddr: u8) -> Vec<u8> {
    let is_answer = matches!(message, Dhcp::Offer | Dhcp::Ack);
    let mut bytes = vec![1 + u8::from(is_answer), 1, 6, 0, 0, 0, 0, 7];
    bytes.resize(12, 0);
    bytes.extend(if message == Dhcp::Release {
        LEASED
    } else {
        [0; 4]
    });
    bytes.extend(if is_answer { LEASED } else { [0; 4] });
    bytes.resize(28, 0);
    bytes.extend([2, 0, 0, 0, 0, chaddr]);
    bytes.resize(236, 0);
    bytes.extend([0x63, 0x82, 0x53, 0x63, 53, 1, message as u8]);
    bytes.extend([54, 4]);
    bytes.extend(LEASER);
    if message == Dhcp::Request {
        bytes.extend([50, 4]);
        bytes.extend(LEASED);
    }
    if is_answer {
        bytes.extend([51, 4, 0, 0, 0x0e, 0x10]);
    }
    bytes.push(255);
    bytes
}
