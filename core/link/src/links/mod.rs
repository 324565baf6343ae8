//! The control plane: which links there are, over what, and what they have set.
//!
//! One [`Links`] per machine, behind one lock of the shell. A *port* is a link with
//! clients: a card's own link, or an etherstub, which has no card. VNICs and VLANs are
//! clients of a port, and so is the port's own link. Each change ends with a new
//! [`Table`] for the lanes of its port (`publish.rs`).
//!
//! Each operation checks everything first, then tells the card, which may refuse, and
//! only then changes anything: what fails leaves no trace.
//!
//! Lock order in the shell: a lane, then this. Nothing here takes a lane.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use hal::{NicControl, NicError, NicShape, SpreadRule};
use wire::MacAddr;

use crate::bandwidth::Limit;
use crate::flow::{FlowError, FlowId, FlowProps, Rule};
use crate::group::{PlaceError, Placement, RingsWanted};
use crate::moderation::Moderation;
use crate::open::{Hold, OpenError};
use crate::promisc::NotSet;
use crate::props::{PropError, Settings};
use crate::protect::learn::Learner;
use crate::rss::{Indirection, Rss};
use crate::slots::Slots;
use crate::table::{Generation, LinkId, StreamId, Table};
use crate::vlan::VlanId;

mod flows;
mod groups;
mod publish;
mod settings;
mod streams;

pub use flows::FlowInfo;
pub use groups::GroupInfo;
use streams::Stream;

/// Links of a machine.
pub const LINKS_MAX: u16 = 1024;
/// Streams of a machine.
pub const STREAMS_MAX: u16 = 4096;
/// Bytes of a name.
const NAME_BYTES_MAX: usize = 31;
/// The prefix of random addresses: locally administered, as illumos has it.
pub const RANDOM_PREFIX: [u8; 3] = [0x02, 0x08, 0x20];
/// The MTU of a link without a card.
const STUB_MTU: u16 = 9000;

/// What a link is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// A card's own.
    Phys,
    /// A port without a card.
    Etherstub,
    /// A station of its own on a port.
    Vnic,
    /// The port's station in a VLAN.
    Vlan,
}

impl Class {
    /// Its name, as `dladm` shows it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Phys => "phys",
            Self::Etherstub => "etherstub",
            Self::Vnic => "vnic",
            Self::Vlan => "vlan",
        }
    }
}

/// Why an operation on links failed; nothing has changed then.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LinkError {
    /// There is no such link or stream.
    NotFound,
    /// The name does not begin with a letter and end in a digit, or is too long.
    BadName,
    /// The name is taken.
    NameTaken,
    /// There are as many as there can be.
    TooMany,
    /// The link cannot have clients, or cannot be changed so.
    WrongClass,
    /// No station can have that address.
    BadAddress,
    /// A client of the port has the address in that VLAN.
    AddressTaken,
    /// Streams hold the link, or clients are over it.
    InUse,
    /// No rings as asked for.
    Place(PlaceError),
    /// The card refused.
    Nic(NicError),
    /// The property cannot be set so.
    Prop(PropError),
    /// The flow cannot be made so.
    Flow(FlowError),
    /// The stream may not do that.
    Open(OpenError),
    /// A promiscuous level that is not set was to be turned off.
    NotPromiscuous(NotSet),
}

/// Where a VNIC's address comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MacSource {
    /// The administrator.
    Given(MacAddr),
    /// Three bytes in front of these random bits.
    Random {
        /// The first three bytes.
        prefix: [u8; 3],
        /// Unpredictable.
        bits: u64,
    },
}

/// Where a link's address came from (`MACADDRTYPE`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MacOrigin {
    /// The card's own; of a VLAN, its port's.
    Factory,
    /// The administrator.
    Fixed,
    /// Random bits.
    Random,
    /// There is none: an etherstub is no station.
    None,
}

impl MacOrigin {
    /// Its name, as `dladm` shows it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Factory => "factory",
            Self::Fixed => "fixed",
            Self::Random => "random",
            Self::None => "--",
        }
    }
}

/// A VNIC to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VnicSpec<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its port.
    pub over: LinkId,
    /// Its address.
    pub mac: MacSource,
    /// Its VLAN.
    pub vid: Option<VlanId>,
    /// The rings it wants.
    pub rings: RingsWanted,
}

pub(crate) struct Flow {
    pub id: FlowId,
    pub name: String,
    pub rule: Rule,
    pub props: FlowProps,
    /// Received and sent.
    pub limits: Option<[Arc<Limit>; 2]>,
}

/// What a link has besides its port.
pub(crate) struct Link {
    name: String,
    class: Class,
    /// The link's port; its own id, if it is one.
    over: LinkId,
    mac: MacAddr,
    mac_origin: MacOrigin,
    vid: Option<VlanId>,
    settings: Settings,
    /// Of `settings.maxbw`, received and sent.
    limits: Option<[Arc<Limit>; 2]>,
    hold: Hold,
    flows: Vec<Flow>,
    learner: Learner,
    port: Option<Port>,
}

/// What a port has besides its link.
struct Port {
    card: Option<CardState>,
    generation: Arc<Generation>,
    table: Arc<Table>,
    is_up: Option<bool>,
}

struct CardState {
    nic: Box<dyn NicControl + Send>,
    shape: NicShape,
    placement: Placement,
    /// Whether streams want everything on the wire.
    is_listening: bool,
    /// As the card was last told.
    multicasts: Vec<[u8; 6]>,
}

/// A line of `dladm show-link` and its kin.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinkInfo {
    /// Which.
    pub id: LinkId,
    /// Its name.
    pub name: String,
    /// What it is.
    pub class: Class,
    /// Its port, if that is another link.
    pub over: Option<LinkId>,
    /// Its address.
    pub mac: MacAddr,
    /// Where that came from.
    pub mac_origin: MacOrigin,
    /// Its VLAN.
    pub vid: Option<VlanId>,
    /// Its largest payload.
    pub mtu: u16,
    /// Whether its card takes everything now (`promisc`).
    pub is_promiscuous: bool,
    /// Messages that taught nothing (`dhcpdropped`).
    pub dhcp_dropped: u64,
}

/// All links of a machine.
pub struct Links {
    links: Slots<Link>,
    streams: Slots<Stream>,
    /// Flows made so far.
    flows_made: u64,
}

impl Default for Links {
    fn default() -> Self {
        Self::new()
    }
}

impl Links {
    /// No links.
    pub fn new() -> Self {
        Self {
            links: Slots::new(LINKS_MAX),
            streams: Slots::new(STREAMS_MAX),
            flows_made: 0,
        }
    }

    /// A card becomes a link. Its rings are spread over evenly, as far as it can.
    pub fn attach(
        &mut self,
        name: &str,
        mut nic: Box<dyn NicControl + Send>,
        rss: &Rss,
    ) -> Result<LinkId, LinkError> {
        self.check_name(name)?;
        let shape = nic.shape();
        spread(&mut *nic, &shape, rss)?;
        let mac = MacAddr(shape.mac);
        let placement = Placement::new(&shape);
        let card = CardState {
            nic,
            shape,
            placement,
            is_listening: false,
            multicasts: Vec::new(),
        };
        self.add_port(name, Class::Phys, mac, Some(card))
    }

    /// A port without a card.
    pub fn create_etherstub(&mut self, name: &str) -> Result<LinkId, LinkError> {
        self.check_name(name)?;
        self.add_port(name, Class::Etherstub, MacAddr::default(), None)
    }

    fn add_port(
        &mut self,
        name: &str,
        class: Class,
        mac: MacAddr,
        card: Option<CardState>,
    ) -> Result<LinkId, LinkError> {
        let nowhere = LinkId {
            index: u16::MAX,
            generation: 0,
        };
        let mut link = Link::new(name, class, nowhere, mac, None);
        link.port = Some(Port {
            card,
            generation: Arc::default(),
            table: Arc::default(),
            is_up: None,
        });
        let id = self.insert(link)?;
        if let Some(link) = self.link_mut(id) {
            link.over = id;
        }
        self.publish(id);
        Ok(id)
    }

    /// A station of its own on a port.
    pub fn create_vnic(&mut self, spec: &VnicSpec<'_>) -> Result<LinkId, LinkError> {
        self.check_name(spec.name)?;
        let mac = match spec.mac {
            MacSource::Given(mac) => mac,
            MacSource::Random { prefix, bits } => {
                let [a, b, c] = prefix;
                let [.., d, e, f] = bits.to_be_bytes();
                MacAddr([a, b, c, d, e, f])
            }
        };
        if !mac.is_station() {
            return Err(LinkError::BadAddress);
        }
        let mut link = Link::new(spec.name, Class::Vnic, spec.over, mac, spec.vid);
        link.settings.rx_rings = spec.rings;
        if matches!(spec.mac, MacSource::Random { .. }) {
            link.mac_origin = MacOrigin::Random;
        }
        self.add_client(link)
    }

    /// The port's station in a VLAN; named after the port if no name is given.
    pub fn create_vlan(
        &mut self,
        name: Option<&str>,
        over: LinkId,
        vid: VlanId,
    ) -> Result<LinkId, LinkError> {
        let port = self.link(over).ok_or(LinkError::NotFound)?;
        if port.class != Class::Phys {
            return Err(LinkError::WrongClass);
        }
        let name = match name {
            Some(name) => name.to_string(),
            None => default_vlan_name(&port.name, vid).ok_or(LinkError::BadName)?,
        };
        self.check_name(&name)?;
        let mut link = Link::new(&name, Class::Vlan, over, port.mac, Some(vid));
        link.settings.rx_rings = RingsWanted::Software;
        self.add_client(link)
    }

    fn add_client(&mut self, link: Link) -> Result<LinkId, LinkError> {
        let (over, mac) = (link.over, link.mac);
        let port = self.link(over).ok_or(LinkError::NotFound)?;
        if port.port.is_none() {
            return Err(LinkError::WrongClass);
        }
        self.check_address(over, mac, link.vid)?;
        let wanted = link.settings.rx_rings;
        if let Some(card) = self.card_mut(over) {
            card.placement
                .add(&mut *card.nic, mac, wanted)
                .map_err(LinkError::Place)?;
        }
        let id = self.insert(link).inspect_err(|_| self.unplace(over, mac))?;
        self.publish(over);
        Ok(id)
    }

    fn unplace(&mut self, over: LinkId, mac: MacAddr) {
        if let Some(card) = self.card_mut(over) {
            card.placement.remove(&mut *card.nic, mac);
        }
    }

    /// Removes a link that nobody holds and nothing is over.
    pub fn delete(&mut self, id: LinkId) -> Result<(), LinkError> {
        let link = self.link(id).ok_or(LinkError::NotFound)?;
        let (over, mac) = (link.over, link.mac);
        let has_streams = self.streams.iter().any(|(_, _, stream)| stream.link == id);
        let has_clients = self.clients_of(id).any(|client| client != id);
        if has_streams || has_clients {
            return Err(LinkError::InUse);
        }
        let gone = self.links.remove(id.index, id.generation);
        if let Some(port) = gone.and_then(|link| link.port) {
            // Lanes look for a new table, find none and end.
            port.generation.raise();
        }
        if over != id {
            self.unplace(over, mac);
            self.publish(over);
        }
        Ok(())
    }

    /// Gives a VNIC another address.
    pub fn set_address(&mut self, id: LinkId, mac: MacAddr) -> Result<(), LinkError> {
        let link = self.link(id).ok_or(LinkError::NotFound)?;
        if link.class != Class::Vnic {
            return Err(LinkError::WrongClass);
        }
        if !mac.is_station() {
            return Err(LinkError::BadAddress);
        }
        let (over, old, wanted) = (link.over, link.mac, link.settings.rx_rings);
        self.check_address(over, mac, link.vid)?;
        if let Some(card) = self.card_mut(over) {
            let placed = card.placement.add(&mut *card.nic, mac, wanted);
            placed.map_err(LinkError::Place)?;
        }
        self.unplace(over, old);
        if let Some(link) = self.link_mut(id) {
            link.mac = mac;
            link.mac_origin = MacOrigin::Fixed;
            // What was leased to the old address is not the new one's.
            link.learner = Learner::default();
        }
        self.publish(over);
        Ok(())
    }

    /// The card says that the wire is there, or not.
    pub fn set_up(&mut self, port: LinkId, is_up: bool) -> Result<(), LinkError> {
        let link = self.link_mut(port).ok_or(LinkError::NotFound)?;
        let port = link.port.as_mut().ok_or(LinkError::WrongClass)?;
        port.is_up = Some(is_up);
        Ok(())
    }

    /// Keeps the interrupts of all rings of a card apart.
    pub fn set_moderation(&mut self, port: LinkId, limit: Moderation) -> Result<(), LinkError> {
        self.link(port).ok_or(LinkError::NotFound)?;
        let card = self.card_mut(port).ok_or(LinkError::WrongClass)?;
        let rings = card
            .shape
            .groups
            .iter()
            .flat_map(|group| group.rings.clone());
        for ring in rings {
            let told = card.nic.set_moderation(ring, limit.spacing());
            told.map_err(LinkError::Nic)?;
        }
        Ok(())
    }

    /// The newest table of a port, and the number that says when there is a newer one.
    pub fn table(&self, port: LinkId) -> Option<(Arc<Generation>, Arc<Table>)> {
        let port = self.link(port)?.port.as_ref()?;
        Some((port.generation.clone(), port.table.clone()))
    }

    /// A link by name.
    pub fn find(&self, name: &str) -> Option<LinkId> {
        let mut links = self.links.iter();
        let (index, generation, _) = links.find(|(_, _, link)| link.name == name)?;
        Some(LinkId { index, generation })
    }

    /// What a link is.
    pub fn info(&self, id: LinkId) -> Option<LinkInfo> {
        let link = self.link(id)?;
        let port = self.link(link.over)?.port.as_ref()?;
        let card = port.card.as_ref();
        Some(LinkInfo {
            id,
            name: link.name.clone(),
            class: link.class,
            over: (link.over != id).then_some(link.over),
            mac: link.mac,
            mac_origin: link.mac_origin,
            vid: link.vid,
            mtu: self.mtu_of(id),
            is_promiscuous: card.is_some_and(|card| card.placement.is_promiscuous()),
            dhcp_dropped: link.learner.dropped(),
        })
    }

    /// All links, in the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = LinkInfo> + '_ {
        let ids = self.links.iter();
        ids.filter_map(|(index, generation, _)| self.info(LinkId { index, generation }))
    }

    fn insert(&mut self, link: Link) -> Result<LinkId, LinkError> {
        let (index, generation) = self.links.insert(link).ok_or(LinkError::TooMany)?;
        Ok(LinkId { index, generation })
    }

    fn link(&self, id: LinkId) -> Option<&Link> {
        self.links.get(id.index, id.generation)
    }

    fn link_mut(&mut self, id: LinkId) -> Option<&mut Link> {
        self.links.get_mut(id.index, id.generation)
    }

    fn card_mut(&mut self, port: LinkId) -> Option<&mut CardState> {
        self.link_mut(port)?.port.as_mut()?.card.as_mut()
    }

    /// A port's clients, itself among them.
    fn clients_of(&self, port: LinkId) -> impl Iterator<Item = LinkId> + '_ {
        self.links
            .iter()
            .filter(move |(_, _, link)| link.over == port)
            .map(|(index, generation, _)| LinkId { index, generation })
    }

    fn check_name(&self, name: &str) -> Result<(), LinkError> {
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'.';
        let bytes = name.as_bytes();
        let is_legal = bytes.len() <= NAME_BYTES_MAX
            && bytes.first().is_some_and(u8::is_ascii_alphabetic)
            && bytes.last().is_some_and(u8::is_ascii_digit)
            && name.bytes().all(is_word);
        match (is_legal, self.find(name)) {
            (false, _) => Err(LinkError::BadName),
            (true, Some(_)) => Err(LinkError::NameTaken),
            (true, None) => Ok(()),
        }
    }

    fn check_address(
        &self,
        over: LinkId,
        mac: MacAddr,
        vid: Option<VlanId>,
    ) -> Result<(), LinkError> {
        let mut clients = self.clients_of(over).filter_map(|id| self.link(id));
        match clients.any(|client| client.mac == mac && client.vid == vid) {
            true => Err(LinkError::AddressTaken),
            false => Ok(()),
        }
    }

    fn stream(&self, id: StreamId) -> Option<&Stream> {
        self.streams.get(id.index, id.generation)
    }
}

impl Link {
    fn new(name: &str, class: Class, over: LinkId, mac: MacAddr, vid: Option<VlanId>) -> Self {
        Self {
            name: name.into(),
            class,
            over,
            mac,
            mac_origin: match class {
                Class::Phys | Class::Vlan => MacOrigin::Factory,
                Class::Vnic => MacOrigin::Fixed,
                Class::Etherstub => MacOrigin::None,
            },
            vid,
            settings: Settings::default(),
            limits: None,
            hold: Hold::Free,
            flows: Vec::new(),
            learner: Learner::default(),
            port: None,
        }
    }
}

/// `bge1` in VLAN 2 is `bge2001`.
fn default_vlan_name(port: &str, vid: VlanId) -> Option<String> {
    let driver = port.trim_end_matches(|digit: char| digit.is_ascii_digit());
    let unit: u32 = port[driver.len()..].parse().ok()?;
    let number = u32::from(vid.get()) * 1000;
    Some(format!("{driver}{}", number.checked_add(unit)?))
}

/// Spreads each group's flows over its rings, where the card can.
fn spread(nic: &mut dyn NicControl, shape: &NicShape, rss: &Rss) -> Result<(), LinkError> {
    for (group, rings) in (0..).zip(&shape.groups) {
        if rings.rings.len() < 2 {
            continue;
        }
        let table = Indirection::even(rings.rings.len() as u16);
        let rule = SpreadRule {
            key: &rss.key.0,
            table: table.entries(),
            tcp_ports: rss.ports.tcp,
            udp_ports: rss.ports.udp,
        };
        match nic.spread(group, &rule) {
            Ok(()) | Err(NicError::Unsupported) => {}
            Err(error) => return Err(LinkError::Nic(error)),
        }
    }
    Ok(())
}
