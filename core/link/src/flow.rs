//! Flows: rules of the administrator that give some traffic of a link a limit and a
//! priority of its own.
//!
//! A rule names a local or remote prefix, a protocol, a port, or a service field. All rules of
//! one link are of one [`Kind`], so that at most one kind of field is looked at for each
//! frame. Both directions match: *local* is our side, whichever way the frame goes. Of
//! two prefixes that both match, the longer one wins, then the older rule.

use alloc::string::String;

use crate::bandwidth::{Bandwidth, BandwidthError};
use crate::headers::{ICMP, ICMP6, Packet, SCTP, TCP, UDP};
use crate::prefix::IpPrefix;

/// A flow, by a number that no other one ever has.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct FlowId(pub(crate) u64);

/// What the rules of one link look at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// `local_ip`
    LocalIp,
    /// `remote_ip`
    RemoteIp,
    /// `transport` alone
    Transport,
    /// `transport` and `local_port`
    LocalPort,
    /// `transport` and `remote_port`
    RemotePort,
    /// `dsfield`
    DsField,
}

/// A rule that can match.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rule {
    /// Our address begins so.
    LocalIp(IpPrefix),
    /// The peer's address begins so.
    RemoteIp(IpPrefix),
    /// The transport has this number.
    Transport(u8),
    /// Our port of a transport.
    LocalPort(u8, u16),
    /// The peer's port of a transport.
    RemotePort(u8, u16),
    /// The service field under a mask.
    DsField {
        /// What it equals.
        value: u8,
        /// The bits that are compared; not zero.
        mask: u8,
    },
}

/// Why attributes are no rule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FlowError {
    /// There is no such attribute.
    UnknownAttribute,
    /// An attribute stands twice.
    Twice,
    /// A value does not parse or is out of range.
    BadValue,
    /// A port stands without a transport that has ports.
    PortWithoutTransport,
    /// These attributes do not go together.
    BadCombination,
    /// The link's other flows look at something else.
    MixedKinds {
        /// What they look at.
        existing: Kind,
    },
    /// A flow matches exactly the same already.
    SameRule,
    /// The name does not begin with a letter, has other signs than letters, digits, `_`,
    /// `-` and `.`, or is too long.
    BadName,
    /// The name is taken.
    NameTaken,
    /// There are too many flows on the link.
    TooMany,
    /// There is no such flow.
    NoSuchFlow,
    /// The limit is none.
    Bandwidth(BandwidthError),
}

#[derive(Default)]
struct Attributes<'a> {
    local_ip: Option<&'a str>,
    remote_ip: Option<&'a str>,
    transport: Option<&'a str>,
    local_port: Option<&'a str>,
    remote_port: Option<&'a str>,
    dsfield: Option<&'a str>,
}

impl<'a> Attributes<'a> {
    fn read(text: &'a str) -> Result<Self, FlowError> {
        let mut attributes = Self::default();
        for pair in text.split(',') {
            let (name, value) = pair.split_once('=').ok_or(FlowError::BadValue)?;
            let slot = match name {
                "local_ip" => &mut attributes.local_ip,
                "remote_ip" => &mut attributes.remote_ip,
                "transport" => &mut attributes.transport,
                "local_port" => &mut attributes.local_port,
                "remote_port" => &mut attributes.remote_port,
                "dsfield" => &mut attributes.dsfield,
                _ => return Err(FlowError::UnknownAttribute),
            };
            if slot.replace(value).is_some() {
                return Err(FlowError::Twice);
            }
        }
        Ok(attributes)
    }
}

impl Rule {
    /// From `attribute=value[,...]` as `flowadm add-flow -a` takes it.
    pub fn parse(text: &str) -> Result<Self, FlowError> {
        let attributes = Attributes::read(text)?;
        let prefix = |text| IpPrefix::parse(text).ok_or(FlowError::BadValue);
        match attributes {
            Attributes {
                local_ip: Some(ip),
                remote_ip: None,
                transport: None,
                local_port: None,
                remote_port: None,
                dsfield: None,
            } => Ok(Self::LocalIp(prefix(ip)?)),
            Attributes {
                local_ip: None,
                remote_ip: Some(ip),
                transport: None,
                local_port: None,
                remote_port: None,
                dsfield: None,
            } => Ok(Self::RemoteIp(prefix(ip)?)),
            Attributes {
                local_ip: None,
                remote_ip: None,
                transport: None,
                local_port: None,
                remote_port: None,
                dsfield: Some(field),
            } => parse_dsfield(field),
            Attributes {
                local_ip: None,
                remote_ip: None,
                transport,
                local_port,
                remote_port,
                dsfield: None,
            } => parse_transport(transport, local_port, remote_port),
            _ => Err(FlowError::BadCombination),
        }
    }

    /// What it looks at.
    pub const fn kind(&self) -> Kind {
        match self {
            Self::LocalIp(_) => Kind::LocalIp,
            Self::RemoteIp(_) => Kind::RemoteIp,
            Self::Transport(_) => Kind::Transport,
            Self::LocalPort(..) => Kind::LocalPort,
            Self::RemotePort(..) => Kind::RemotePort,
            Self::DsField { .. } => Kind::DsField,
        }
    }

    /// Whether a packet matches; `is_sent` says which side is ours.
    pub fn matches(&self, packet: &Packet, is_sent: bool) -> bool {
        let (local, remote) = sides(packet.src, packet.dst, is_sent);
        let ports = packet.ports.map(|(src, dst)| sides(src, dst, is_sent));
        match *self {
            Self::LocalIp(prefix) => prefix.contains(local),
            Self::RemoteIp(prefix) => prefix.contains(remote),
            Self::Transport(protocol) => packet.protocol == protocol,
            Self::LocalPort(protocol, port) => {
                packet.protocol == protocol && ports.is_some_and(|(local, _)| local == port)
            }
            Self::RemotePort(protocol, port) => {
                packet.protocol == protocol && ports.is_some_and(|(_, remote)| remote == port)
            }
            Self::DsField { value, mask } => packet.dsfield & mask == value & mask,
        }
    }

    /// How specific the rule is among those of its kind: the highest that matches wins.
    pub fn rank(&self) -> u8 {
        match self {
            Self::LocalIp(prefix) | Self::RemoteIp(prefix) => prefix.len(),
            Self::DsField { mask, .. } => mask.count_ones() as u8,
            Self::Transport(_) | Self::LocalPort(..) | Self::RemotePort(..) => 0,
        }
    }

    /// The columns IPADDR, PROTO, LPORT, RPORT and DSFLD of `flowadm show-flow`.
    pub fn columns(&self) -> [String; 5] {
        use alloc::format;
        let mut columns = core::array::from_fn(|_| String::from("--"));
        let [ip, proto, local, remote, field] = &mut columns;
        match *self {
            Self::LocalIp(prefix) => *ip = format!("LCL:{prefix}"),
            Self::RemoteIp(prefix) => *ip = format!("RMT:{prefix}"),
            Self::Transport(number) => *proto = protocol_name(number).into(),
            Self::LocalPort(number, port) => {
                (*proto, *local) = (protocol_name(number).into(), format!("{port}"));
            }
            Self::RemotePort(number, port) => {
                (*proto, *remote) = (protocol_name(number).into(), format!("{port}"));
            }
            Self::DsField { value, mask } => *field = format!("{value:#04x}:{mask:#04x}"),
        }
        columns
    }
}

fn sides<T>(src: T, dst: T, is_sent: bool) -> (T, T) {
    if is_sent { (src, dst) } else { (dst, src) }
}

const PROTOCOLS: [(&str, u8); 5] = [
    ("tcp", TCP),
    ("udp", UDP),
    ("sctp", SCTP),
    ("icmp", ICMP),
    ("icmpv6", ICMP6),
];

fn protocol_name(number: u8) -> &'static str {
    let named = PROTOCOLS.iter().find(|(_, known)| *known == number);
    named.map_or("--", |(name, _)| name)
}

fn parse_transport(
    transport: Option<&str>,
    local_port: Option<&str>,
    remote_port: Option<&str>,
) -> Result<Rule, FlowError> {
    let Some(name) = transport else {
        return Err(FlowError::PortWithoutTransport);
    };
    let known = PROTOCOLS.iter().find(|(known, _)| *known == name);
    let (_, protocol) = *known.ok_or(FlowError::BadValue)?;
    let port = |text: &str| match text.parse() {
        Ok(0) | Err(_) => Err(FlowError::BadValue),
        Ok(port) => Ok(port),
    };
    match (local_port, remote_port) {
        (None, None) => Ok(Rule::Transport(protocol)),
        (Some(_), Some(_)) => Err(FlowError::BadCombination),
        _ if protocol == ICMP || protocol == ICMP6 => Err(FlowError::PortWithoutTransport),
        (Some(text), None) => Ok(Rule::LocalPort(protocol, port(text)?)),
        (None, Some(text)) => Ok(Rule::RemotePort(protocol, port(text)?)),
    }
}

fn parse_dsfield(text: &str) -> Result<Rule, FlowError> {
    let hex = |text: &str| {
        let digits = text.strip_prefix("0x").ok_or(FlowError::BadValue)?;
        u8::from_str_radix(digits, 16).map_err(|_| FlowError::BadValue)
    };
    let (value, mask) = match text.split_once(':') {
        Some((value, mask)) => (hex(value)?, hex(mask)?),
        None => (hex(text)?, 0xff),
    };
    if mask == 0 {
        return Err(FlowError::BadValue);
    }
    Ok(Rule::DsField { value, mask })
}

/// Who goes first when several wait for one ring.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Priority {
    /// Last.
    Low,
    /// Where flows are unless told otherwise.
    Medium,
    /// Where links are unless told otherwise.
    High,
}

impl Priority {
    /// From its name.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "low" => Some(Self::Low),
            "medium" => Some(Self::Medium),
            "high" => Some(Self::High),
            _ => None,
        }
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

/// What a flow's traffic gets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlowProps {
    /// The limit in each direction, if any.
    pub maxbw: Option<Bandwidth>,
    /// Who goes first.
    pub priority: Priority,
}

impl Default for FlowProps {
    fn default() -> Self {
        Self {
            maxbw: None,
            priority: Priority::Medium,
        }
    }
}

impl FlowProps {
    /// Sets a property from its text; on failure nothing changes.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), FlowError> {
        match name {
            "maxbw" => {
                let limit = Bandwidth::parse(value).map_err(FlowError::Bandwidth)?;
                self.maxbw = Some(limit);
            }
            "priority" => self.priority = Priority::parse(value).ok_or(FlowError::BadValue)?,
            _ => return Err(FlowError::UnknownAttribute),
        }
        Ok(())
    }

    /// Sets a property back to its default.
    pub fn reset(&mut self, name: &str) -> Result<(), FlowError> {
        match name {
            "maxbw" => self.maxbw = None,
            "priority" => self.priority = Priority::Medium,
            _ => return Err(FlowError::UnknownAttribute),
        }
        Ok(())
    }

    /// The VALUE column of `flowadm show-flowprop`.
    pub fn show(&self, name: &str) -> Result<String, FlowError> {
        use alloc::string::ToString;
        match name {
            "maxbw" => Ok(self
                .maxbw
                .map_or_else(|| "--".into(), |limit| limit.to_string())),
            "priority" => Ok(self.priority.name().into()),
            _ => Err(FlowError::UnknownAttribute),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::headers::Piece;

    fn packet(protocol: u8, src: (&str, u16), dst: (&str, u16)) -> Packet {
        Packet {
            src: src.0.parse().expect("an address"),
            dst: dst.0.parse().expect("an address"),
            protocol,
            piece: Piece::Whole,
            ports: Some((src.1, dst.1)),
            dsfield: 0xb8,
            transport_at: 34,
        }
    }

    fn rule(text: &str) -> Rule {
        Rule::parse(text).expect("a rule")
    }

    #[test]
    fn a_443_flow_shows_tcp_and_its_port_only() {
        let columns = rule("transport=tcp,local_port=443").columns();
        assert_eq!(columns, ["--", "tcp", "443", "--", "--"]);
    }

    #[test]
    fn a_port_without_a_transport_that_has_ports_is_rejected() {
        for text in [
            "local_port=25",
            "remote_port=25",
            "transport=icmp,local_port=25",
        ] {
            assert_eq!(
                Rule::parse(text),
                Err(FlowError::PortWithoutTransport),
                "{text}"
            );
        }
    }

    #[test]
    fn attributes_that_do_not_go_together_are_rejected() {
        for (text, error) in [
            (
                "local_ip=10.0.0.1,remote_ip=10.0.0.2",
                FlowError::BadCombination,
            ),
            (
                "transport=tcp,local_port=1,remote_port=2",
                FlowError::BadCombination,
            ),
            ("local_ip=10.0.0.1,transport=tcp", FlowError::BadCombination),
            ("transport=tcp,transport=udp", FlowError::Twice),
            ("transport=tcp,local_port=0", FlowError::BadValue),
            ("transport=tcp,local_port=65536", FlowError::BadValue),
            ("transport=gre", FlowError::BadValue),
            ("dsfield=0x2e:0x00", FlowError::BadValue),
            ("dsfield=46", FlowError::BadValue),
            ("colour=red", FlowError::UnknownAttribute),
            ("", FlowError::BadValue),
        ] {
            assert_eq!(Rule::parse(text), Err(error), "{text}");
        }
    }

    #[test]
    fn both_directions_match_with_local_as_our_side() {
        let sent = packet(TCP, ("10.0.0.1", 443), ("10.0.0.9", 5000));
        let received = packet(TCP, ("10.0.0.9", 5000), ("10.0.0.1", 443));
        for text in [
            "transport=tcp,local_port=443",
            "transport=tcp,remote_port=5000",
            "local_ip=10.0.0.1",
            "remote_ip=10.0.0.8/30",
            "transport=tcp",
            "dsfield=0xb8:0xfc",
        ] {
            let rule = rule(text);
            assert!(
                rule.matches(&sent, true) && rule.matches(&received, false),
                "{text}"
            );
        }
        for text in [
            "transport=udp",
            "local_ip=10.0.0.9",
            "dsfield=0xb9",
            "transport=udp,local_port=443",
        ] {
            assert!(!rule(text).matches(&sent, true), "{text}");
        }
    }

    #[test]
    fn hosts_have_full_prefixes_unless_said_otherwise() {
        assert_eq!(rule("local_ip=10.0.0.1").columns()[0], "LCL:10.0.0.1");
        assert_eq!(rule("remote_ip=fe80::/10").columns()[0], "RMT:fe80::/10");
        assert!(rule("local_ip=10.0.0.1").rank() > rule("local_ip=10.0.0.0/24").rank());
    }

    #[test]
    fn a_limit_of_500m_is_shown_as_500_and_the_default_priority_is_medium() {
        let mut props = FlowProps::default();
        assert_eq!(props.show("maxbw").as_deref(), Ok("--"));
        assert_eq!(props.show("priority").as_deref(), Ok("medium"));
        props.set("maxbw", "500M").expect("a limit");
        assert_eq!(props.show("maxbw").as_deref(), Ok("500"));
        let too_low = BandwidthError::TooLow { bps: 1_000_000 };
        assert_eq!(props.set("maxbw", "1M"), Err(FlowError::Bandwidth(too_low)));
        assert_eq!(props.show("maxbw").as_deref(), Ok("500"));
        props.reset("maxbw").expect("known");
        assert_eq!(props.show("maxbw").as_deref(), Ok("--"));
    }
}
