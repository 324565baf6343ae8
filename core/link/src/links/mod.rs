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
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use hal::{NicControl, NicShape};
use wire::MacAddr;

use crate::bandwidth::Limit;
use crate::flow::{FlowId, FlowProps, Rule};
use crate::group::Placement;
use crate::open::Hold;
use crate::props::Settings;
use crate::protect::learn::Learner;
use crate::slots::Slots;
use crate::table::{Generation, LinkId, StreamId, Table};
use crate::vlan::VlanId;

mod clients;
mod error;
mod flows;
mod groups;
mod kinds;
mod names;
mod ports;
mod publish;
mod settings;
mod streams;

pub use error::LinkError;
pub use flows::FlowInfo;
pub use groups::GroupInfo;
pub use kinds::{Class, LinkInfo, MacOrigin, MacSource, VnicSpec};
use streams::Stream;

/// Links of a machine.
pub const LINKS_MAX: u16 = 1024;
/// Streams of a machine.
pub const STREAMS_MAX: u16 = 4096;
/// The prefix of random addresses: locally administered, as illumos has it.
pub const RANDOM_PREFIX: [u8; 3] = [0x02, 0x08, 0x20];
/// The MTU of a link without a card.
const STUB_MTU: u16 = 9000;

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
    vlans: Vec<u16>,
}

/// All links of a machine.
pub struct Links {
    links: Slots<Link>,
    streams: Slots<Stream>,
    /// Flows made so far.
    flows_made: u64,
    /// CPUs of the machine.
    cpus: u32,
}

impl Default for Links {
    fn default() -> Self {
        Self::new()
    }
}

impl Links {
    /// No links, on the largest machine.
    pub fn new() -> Self {
        Self::on(base::CPUS_MAX as u32)
    }

    /// No links, on a machine with so many CPUs.
    pub fn on(cpus: u32) -> Self {
        Self {
            links: Slots::new(LINKS_MAX),
            streams: Slots::new(STREAMS_MAX),
            flows_made: 0,
            cpus,
        }
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
