//! Link properties: names, types, defaults, ranges, and what a link has set.
//!
//! [`Settings`] are values that were parsed and found in range, so nobody who uses them
//! checks again. Setting one makes new settings and leaves the old as they are: whoever
//! must also tell a card does that first, and on failure nothing has changed.
//!
//! Of illumos' table these are missing: `pool` and `zone` (no zones yet), `txrings` (each
//! CPU sends by its own ring), `tagmode` (no priority tags are sent), `flowctrl` and
//! `adv_*` (no driver of ours negotiates).

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use base::CpuSet;
use wire::MacAddr;

use crate::bandwidth::{Bandwidth, BandwidthError};
use crate::cpus;
use crate::flow::Priority;
use crate::group::RingsWanted;
use crate::moderation::Throttling;
use crate::prefix::IpPrefix;
use crate::protect::cid::ClientId;
use crate::protect::{Methods, Protection};

/// Least MTU: what every IPv4 host must accept (RFC 791).
pub const MTU_MIN: u16 = 68;
/// Entries of the lists of `allowed-ips`, `allowed-dhcp-cids` and `secondary-macs`.
pub const LIST_MAX: usize = 32;

/// A property.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Property {
    /// `mtu`
    Mtu,
    /// `maxbw`
    MaxBw,
    /// `priority`
    Priority,
    /// `cpus`
    Cpus,
    /// `rxrings`
    RxRings,
    /// `promisc-filtered`
    PromiscFiltered,
    /// `protection`
    Protection,
    /// `allowed-ips`
    AllowedIps,
    /// `allowed-dhcp-cids`
    AllowedDhcpCids,
    /// `allow-all-dhcp-cids`
    AllowAllDhcpCids,
    /// `dynamic-methods`
    DynamicMethods,
    /// `secondary-macs`
    SecondaryMacs,
    /// `intr-throttling`, of a card's own link
    IntrThrottling,
    /// `speed`, read-only
    Speed,
    /// `duplex`, read-only
    Duplex,
    /// `state`, read-only
    State,
}

impl Property {
    /// All of them, in the order in which tools show them.
    pub const ALL: [Self; 16] = [
        Self::Speed,
        Self::Duplex,
        Self::State,
        Self::Mtu,
        Self::MaxBw,
        Self::Cpus,
        Self::RxRings,
        Self::Priority,
        Self::PromiscFiltered,
        Self::Protection,
        Self::AllowedIps,
        Self::AllowedDhcpCids,
        Self::AllowAllDhcpCids,
        Self::DynamicMethods,
        Self::SecondaryMacs,
        Self::IntrThrottling,
    ];

    /// By its name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|property| property.name() == name)
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mtu => "mtu",
            Self::MaxBw => "maxbw",
            Self::Priority => "priority",
            Self::Cpus => "cpus",
            Self::RxRings => "rxrings",
            Self::PromiscFiltered => "promisc-filtered",
            Self::Protection => "protection",
            Self::AllowedIps => "allowed-ips",
            Self::AllowedDhcpCids => "allowed-dhcp-cids",
            Self::AllowAllDhcpCids => "allow-all-dhcp-cids",
            Self::DynamicMethods => "dynamic-methods",
            Self::SecondaryMacs => "secondary-macs",
            Self::IntrThrottling => "intr-throttling",
            Self::Speed => "speed",
            Self::Duplex => "duplex",
            Self::State => "state",
        }
    }

    /// Whether nobody can set it.
    pub const fn is_read_only(self) -> bool {
        matches!(self, Self::Speed | Self::Duplex | Self::State)
    }

    /// The POSSIBLE column.
    pub fn possible(self, facts: &Facts) -> Cow<'static, str> {
        match self {
            Self::Mtu => format!("{MTU_MIN}-{}", facts.mtu_max).into(),
            Self::Priority => "low,medium,high".into(),
            Self::RxRings => "sw,hw,<1-65535>".into(),
            Self::PromiscFiltered => "off,on".into(),
            Self::AllowAllDhcpCids => "true,false".into(),
            Self::Protection => "mac-nospoof,restricted,ip-nospoof,dhcp-nospoof".into(),
            Self::DynamicMethods => "dhcpv4,dhcpv6,slaac,addrconf".into(),
            Self::IntrThrottling => "adaptive,off,<123-1000000>".into(),
            Self::Duplex => "half,full".into(),
            Self::State => "up,down".into(),
            _ => "--".into(),
        }
    }
}

/// What a link is by itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Facts {
    /// The lower link's MTU, or the card's largest.
    pub mtu_max: u16,
    /// Megabits a second; zero if unknown.
    pub speed_mbps: u64,
    /// Whether frames can move; `None` if nobody knows.
    pub is_up: Option<bool>,
    /// CPUs of the machine.
    pub cpus: u32,
}

/// Why a property is not set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PropError {
    /// There is none of that name.
    Unknown,
    /// Nobody sets it.
    ReadOnly,
    /// The value is not of the property's type.
    BadValue,
    /// The value is outside of the property's range.
    OutOfRange,
    /// A list has more entries than are allowed.
    TooMany {
        /// How many are.
        most: usize,
    },
    /// A list of CPUs has none.
    NoCpu,
    /// A list names a CPU that is not there.
    NoSuchCpu {
        /// How many are.
        cpus: u32,
    },
    /// The limit is none.
    Bandwidth(BandwidthError),
}

/// What a link has set.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    /// The largest payload, if it is not the largest possible.
    pub mtu: Option<u16>,
    /// The limit in each direction.
    pub maxbw: Option<Bandwidth>,
    /// Who goes first.
    pub priority: Priority,
    /// CPUs that take the link's frames; empty for any.
    pub cpus: CpuSet,
    /// What rings it wants.
    pub rx_rings: RingsWanted,
    /// Whether promiscuous streams are not shown neighbours' unicast frames.
    pub promisc_filtered: bool,
    /// Which checks are on.
    pub protection: Protection,
    /// Addresses that the client may use.
    pub allowed_ips: Vec<IpPrefix>,
    /// DHCP identities, with the text that names them.
    pub allowed_cids: Vec<(String, ClientId)>,
    /// Whether it may use any.
    pub allow_all_cids: bool,
    /// How it may learn addresses, if the administrator has said so.
    pub dynamic_methods: Option<Methods>,
    /// Other source addresses.
    pub secondary_macs: Vec<MacAddr>,
    /// How far apart a card's interrupts are.
    pub throttling: Throttling,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            mtu: None,
            maxbw: None,
            priority: Priority::High,
            cpus: CpuSet::EMPTY,
            rx_rings: RingsWanted::Any,
            promisc_filtered: true,
            protection: Protection::empty(),
            allowed_ips: Vec::new(),
            allowed_cids: Vec::new(),
            allow_all_cids: false,
            dynamic_methods: None,
            secondary_macs: Vec::new(),
            throttling: Throttling::default(),
        }
    }
}

impl Settings {
    /// How the client may learn addresses: none by default if some are allowed by name.
    pub fn methods(&self) -> Methods {
        let default = match self.allowed_ips.is_empty() {
            true => Methods::all(),
            false => Methods::empty(),
        };
        self.dynamic_methods.unwrap_or(default)
    }

    /// These settings with `property` set to `text`.
    pub fn with(&self, property: Property, text: &str, facts: &Facts) -> Result<Self, PropError> {
        let mut new = self.clone();
        match property {
            Property::Mtu => new.mtu = Some(parse_mtu(text, facts)?),
            Property::MaxBw => {
                new.maxbw = Some(Bandwidth::parse(text).map_err(PropError::Bandwidth)?);
            }
            Property::Priority => {
                new.priority = Priority::parse(text).ok_or(PropError::BadValue)?;
            }
            Property::Cpus => new.cpus = cpus::parse(text, facts.cpus)?,
            Property::RxRings => new.rx_rings = parse_rings(text)?,
            Property::PromiscFiltered => new.promisc_filtered = flag(text, "on", "off")?,
            Property::Protection => new.protection = flags(text, &PROTECTIONS)?,
            Property::AllowedIps => new.allowed_ips = list(text, LIST_MAX, IpPrefix::parse)?,
            Property::AllowedDhcpCids => {
                let named = |text: &str| Some((text.into(), ClientId::parse(text)?));
                new.allowed_cids = list(text, LIST_MAX, named)?;
            }
            Property::AllowAllDhcpCids => new.allow_all_cids = flag(text, "true", "false")?,
            Property::DynamicMethods => new.dynamic_methods = Some(flags(text, &METHODS)?),
            Property::SecondaryMacs => new.secondary_macs = list(text, LIST_MAX, parse_mac)?,
            Property::IntrThrottling => new.throttling = Throttling::parse(text)?,
            Property::Speed | Property::Duplex | Property::State => {
                return Err(PropError::ReadOnly);
            }
        }
        Ok(new)
    }

    /// These settings with `property` back at its default.
    pub fn without(&self, property: Property) -> Result<Self, PropError> {
        let (mut new, default) = (self.clone(), Self::default());
        match property {
            Property::Mtu => new.mtu = default.mtu,
            Property::MaxBw => new.maxbw = default.maxbw,
            Property::Priority => new.priority = default.priority,
            Property::Cpus => new.cpus = default.cpus,
            Property::RxRings => new.rx_rings = default.rx_rings,
            Property::PromiscFiltered => new.promisc_filtered = default.promisc_filtered,
            Property::Protection => new.protection = default.protection,
            Property::AllowedIps => new.allowed_ips = default.allowed_ips,
            Property::AllowedDhcpCids => new.allowed_cids = default.allowed_cids,
            Property::AllowAllDhcpCids => new.allow_all_cids = default.allow_all_cids,
            Property::DynamicMethods => new.dynamic_methods = default.dynamic_methods,
            Property::SecondaryMacs => new.secondary_macs = default.secondary_macs,
            Property::IntrThrottling => new.throttling = default.throttling,
            Property::Speed | Property::Duplex | Property::State => {
                return Err(PropError::ReadOnly);
            }
        }
        Ok(new)
    }

    /// The VALUE column: `--` for what is not set, `?` for what nobody knows.
    pub fn show(&self, property: Property, facts: &Facts) -> String {
        let value = match property {
            Property::Mtu => self.mtu.unwrap_or(facts.mtu_max).to_string(),
            Property::MaxBw => self
                .maxbw
                .map_or_else(String::new, |limit| limit.to_string()),
            Property::Priority => self.priority.name().into(),
            Property::Cpus => cpus::show(self.cpus),
            Property::RxRings => show_rings(self.rx_rings),
            Property::PromiscFiltered => if self.promisc_filtered { "on" } else { "off" }.into(),
            Property::Protection => names(self.protection, &PROTECTIONS),
            Property::AllowedIps => join(&self.allowed_ips, ToString::to_string),
            Property::AllowedDhcpCids => join(&self.allowed_cids, |(text, _)| text.clone()),
            Property::AllowAllDhcpCids => self.allow_all_cids.to_string(),
            Property::DynamicMethods => self
                .dynamic_methods
                .map_or_else(String::new, |methods| names(methods, &METHODS[..3])),
            Property::SecondaryMacs => join(&self.secondary_macs, ToString::to_string),
            Property::IntrThrottling => self.throttling.to_string(),
            Property::Speed if facts.speed_mbps == 0 => "?".into(),
            Property::Speed => facts.speed_mbps.to_string(),
            Property::Duplex => "full".into(),
            Property::State => match facts.is_up {
                Some(true) => "up".into(),
                Some(false) => "down".into(),
                None => "unknown".into(),
            },
        };
        if value.is_empty() { "--".into() } else { value }
    }
}

const PROTECTIONS: [(&str, Protection); 4] = [
    ("mac-nospoof", Protection::MAC_NOSPOOF),
    ("restricted", Protection::RESTRICTED),
    ("ip-nospoof", Protection::IP_NOSPOOF),
    ("dhcp-nospoof", Protection::DHCP_NOSPOOF),
];

const METHODS: [(&str, Methods); 4] = [
    ("dhcpv4", Methods::DHCPV4),
    ("dhcpv6", Methods::DHCPV6),
    ("slaac", Methods::SLAAC),
    ("addrconf", Methods::DHCPV6.union(Methods::SLAAC)),
];

fn flags<F: bitflags::Flags + Copy>(text: &str, known: &[(&str, F)]) -> Result<F, PropError> {
    let mut set = F::empty();
    for name in text.split(',') {
        let named = known.iter().find(|(known, _)| *known == name);
        set.insert(named.ok_or(PropError::BadValue)?.1);
    }
    Ok(set)
}

fn names<F: bitflags::Flags + Copy>(set: F, known: &[(&str, F)]) -> String {
    let names: Vec<&str> = known
        .iter()
        .filter(|(_, flag)| set.contains(*flag))
        .map(|(name, _)| *name)
        .collect();
    names.join(",")
}

fn flag(text: &str, yes: &str, no: &str) -> Result<bool, PropError> {
    match text {
        text if text == yes => Ok(true),
        text if text == no => Ok(false),
        _ => Err(PropError::BadValue),
    }
}

fn list<T>(
    text: &str,
    most: usize,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<Vec<T>, PropError> {
    if text.split(',').count() > most {
        return Err(PropError::TooMany { most });
    }
    let entries = text.split(',').map(parse);
    entries.collect::<Option<_>>().ok_or(PropError::BadValue)
}

fn join<T>(entries: &[T], show: impl Fn(&T) -> String) -> String {
    entries.iter().map(show).collect::<Vec<_>>().join(",")
}

fn parse_mtu(text: &str, facts: &Facts) -> Result<u16, PropError> {
    let mtu: u32 = text.parse().map_err(|_| PropError::BadValue)?;
    let fits = u16::try_from(mtu)
        .ok()
        .filter(|mtu| (MTU_MIN..=facts.mtu_max).contains(mtu));
    fits.ok_or(PropError::OutOfRange)
}

fn parse_rings(text: &str) -> Result<RingsWanted, PropError> {
    match text {
        "sw" => Ok(RingsWanted::Software),
        "hw" => Ok(RingsWanted::Hardware),
        number => match number.parse::<u16>() {
            Ok(0) => Err(PropError::OutOfRange),
            Ok(rings) => Ok(RingsWanted::AtLeast(rings)),
            Err(_) => Err(PropError::BadValue),
        },
    }
}

fn show_rings(wanted: RingsWanted) -> String {
    match wanted {
        RingsWanted::Any => String::new(),
        RingsWanted::Hardware => "hw".into(),
        RingsWanted::Software => "sw".into(),
        RingsWanted::AtLeast(rings) => rings.to_string(),
    }
}

/// A station's address: six hex numbers of one or two digits between colons.
pub fn parse_mac(text: &str) -> Option<MacAddr> {
    let mut bytes = [0; 6];
    let mut parts = text.split(':');
    for byte in &mut bytes {
        let part = parts.next()?;
        let is_hex = part.bytes().all(|digit| digit.is_ascii_hexdigit());
        if part.is_empty() || part.len() > 2 || !is_hex {
            return None;
        }
        *byte = u8::from_str_radix(part, 16).ok()?;
    }
    let mac = MacAddr(bytes);
    (parts.next().is_none() && mac.is_station()).then_some(mac)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FACTS: Facts = Facts {
        mtu_max: 9000,
        speed_mbps: 10_000,
        is_up: Some(true),
        cpus: 8,
    };

    fn set(name: &str, text: &str) -> Result<Settings, PropError> {
        let property = Property::named(name).ok_or(PropError::Unknown)?;
        Settings::default().with(property, text, &FACTS)
    }

    fn shown(settings: &Settings, name: &str) -> String {
        settings.show(Property::named(name).expect("known"), &FACTS)
    }

    #[test]
    fn what_is_set_is_shown_and_reset_to_its_default() {
        for (name, text, default) in [
            ("mtu", "1500", "9000"),
            ("maxbw", "500", "--"),
            ("priority", "low", "high"),
            ("cpus", "0,3,5", "--"),
            ("rxrings", "hw", "--"),
            ("rxrings", "2", "--"),
            ("promisc-filtered", "off", "on"),
            (
                "protection",
                "mac-nospoof,restricted,ip-nospoof,dhcp-nospoof",
                "--",
            ),
            ("allowed-ips", "10.0.0.0/24,fe80::1", "--"),
            ("allowed-dhcp-cids", "0x0102,myhost", "--"),
            ("allow-all-dhcp-cids", "true", "false"),
            ("dynamic-methods", "dhcpv4,slaac", "--"),
            ("secondary-macs", "02:00:00:00:00:09", "--"),
            ("intr-throttling", "8000", "adaptive"),
        ] {
            let settings = set(name, text).expect(name);
            assert_eq!(shown(&settings, name), text);
            let property = Property::named(name).expect("known");
            let reset = settings.without(property).expect(name);
            assert_eq!(reset, Settings::default(), "{name}");
            assert_eq!(shown(&reset, name), default, "{name}");
        }
    }

    #[test]
    fn read_only_properties_cannot_be_set_or_reset() {
        for (name, value) in [("speed", "10000"), ("duplex", "full"), ("state", "up")] {
            assert_eq!(set(name, value), Err(PropError::ReadOnly));
            let property = Property::named(name).expect("known");
            assert_eq!(
                Settings::default().without(property),
                Err(PropError::ReadOnly)
            );
            assert_eq!(shown(&Settings::default(), name), value);
        }
    }

    #[test]
    fn values_out_of_range_or_of_another_type_are_rejected() {
        for (name, text, error) in [
            ("mtu", "67", PropError::OutOfRange),
            ("mtu", "9001", PropError::OutOfRange),
            ("mtu", "70000", PropError::OutOfRange),
            ("mtu", "big", PropError::BadValue),
            ("priority", "urgent", PropError::BadValue),
            ("cpus", "1,two", PropError::BadValue),
            ("rxrings", "0", PropError::OutOfRange),
            ("protection", "nospoof", PropError::BadValue),
            ("secondary-macs", "ff:ff:ff:ff:ff:ff", PropError::BadValue),
            ("secondary-macs", "2:0:0:0:0", PropError::BadValue),
            ("allowed-ips", "", PropError::BadValue),
            ("colour", "red", PropError::Unknown),
        ] {
            assert_eq!(set(name, text), Err(error), "{name}={text}");
        }
        let too_low = BandwidthError::TooLow { bps: 1_000_000 };
        assert_eq!(set("maxbw", "1M"), Err(PropError::Bandwidth(too_low)));
    }

    #[test]
    fn a_33rd_allowed_address_is_rejected() {
        let entries = |count: usize| {
            let hosts = (0..count).map(|host| format!("10.0.0.{host}"));
            hosts.collect::<Vec<_>>().join(",")
        };
        assert!(set("allowed-ips", &entries(32)).is_ok());
        let too_many = Err(PropError::TooMany { most: 32 });
        assert_eq!(set("allowed-ips", &entries(33)), too_many);
    }

    #[test]
    fn allowed_addresses_end_learning_unless_methods_are_named() {
        assert_eq!(Settings::default().methods(), Methods::all());
        let fixed = set("allowed-ips", "10.0.0.1").expect("valid");
        assert_eq!(fixed.methods(), Methods::empty());
        let both = fixed.with(Property::DynamicMethods, "addrconf", &FACTS);
        let both = both.expect("valid");
        assert_eq!(both.methods(), Methods::DHCPV6 | Methods::SLAAC);
        assert_eq!(shown(&both, "dynamic-methods"), "dhcpv6,slaac");
    }
}
