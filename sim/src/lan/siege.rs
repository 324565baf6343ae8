//! Hostile frames and random control operations, in the order that bytes say.
//!
//! Whatever happens: nothing panics, what waits is bounded, tables lead to links that
//! exist, no buffer is lost, a client never gets a frame that it sent, and no frame waits
//! for ever.

use ::link::flow::{FlowProps, Rule};
use ::link::group::RingsWanted;
use ::link::lane::TxFlags;
use ::link::links::{LinkError, MacSource, VnicSpec};
use ::link::promisc::Promiscuity;
use ::link::vlan::VlanId;
use ::link::{LinkId, StreamId};
use base::Duration;
use wire::MacAddr;

use super::wellformed::{self, some_station};
use super::{Card, Lan, station};

/// Reads operations from bytes until they end.
struct Script<'a>(&'a [u8]);

impl Script<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    /// Bytes as they are, or a well-formed frame with some of its bytes changed.
    fn frame(&mut self) -> Option<Vec<u8>> {
        let (what, stations) = (self.byte()?, self.byte()?);
        if what & 0x0f == 0x0f {
            return self.raw_frame();
        }
        let (dst, src) = match stations >> 6 {
            0 => (MacAddr::BROADCAST, some_station(stations)),
            1 => (MacAddr([0x33, 0x33, 0, 0, 0, 1]), some_station(stations)),
            _ => (some_station(stations >> 3), some_station(stations)),
        };
        let mut frame = wellformed::frame(what & 7, dst, src);
        for _ in 0..what >> 6 {
            let (at, value) = (self.byte()?, self.byte()?);
            if let Some(byte) = frame.get_mut(usize::from(at)) {
                *byte = value;
            }
        }
        if what & 0x20 != 0 {
            let len = usize::from(self.byte()?);
            frame.truncate(len);
        }
        if what & 0x10 == 0 {
            wellformed::mend(&mut frame);
        }
        Some(frame)
    }

    fn raw_frame(&mut self) -> Option<Vec<u8>> {
        let len = usize::from(self.byte()?).min(self.0.len());
        let (bytes, rest) = self.0.split_at(len);
        self.0 = rest;
        Some(bytes.to_vec())
    }
}

/// Few, so that they run out.
const BUFFERS: usize = 512;

struct Siege<'a> {
    lan: Lan,
    script: Script<'a>,
    links: Vec<LinkId>,
    streams: Vec<StreamId>,
}

const PROPERTIES: [(&str, &str); 12] = [
    ("protection", "mac-nospoof,ip-nospoof"),
    ("protection", "restricted,dhcp-nospoof"),
    ("allowed-ips", "10.0.0.0/8"),
    ("maxbw", "2M"),
    ("maxbw", "0"),
    ("mtu", "100"),
    ("priority", "low"),
    ("promisc-filtered", "off"),
    ("rxrings", "sw"),
    ("rxrings", "hw"),
    ("dynamic-methods", "dhcpv4"),
    ("secondary-macs", "02:00:00:00:00:05"),
];
const RULES: [&str; 5] = [
    "transport=udp",
    "transport=tcp,local_port=80",
    "local_ip=10.0.0.1",
    "remote_ip=10.0.0.0/8",
    "dsfield=0x00:0x03",
];

/// Runs one script; panics if something is wrong.
pub fn besiege(bytes: &[u8]) {
    let groups: &[&[(u16, u16)]] = &[&[], &[(1, 1)], &[(2, 2), (1, 1), (2, 1)]];
    let mut script = Script(bytes);
    let Some(kind) = script.byte() else {
        return;
    };
    let card = groups.get(usize::from(kind % 4)).map(|groups| {
        let card = Card::new(station(0).0, groups, kind & 0x80 == 0);
        card.set_slots(64, 8);
        card
    });
    let lan = Lan::with_buffers(card, BUFFERS);
    let Ok(lan) = lan else {
        return;
    };
    let mut siege = Siege {
        links: vec![lan.port],
        streams: Vec::new(),
        lan,
        script,
    };
    while siege.step().is_some() {
        siege.check();
    }
    siege.end();
}

impl Siege<'_> {
    fn link(&mut self) -> Option<LinkId> {
        let at = usize::from(self.script.byte()?) % self.links.len();
        Some(self.links[at])
    }

    fn stream(&mut self) -> Option<StreamId> {
        let at = usize::from(self.script.byte()?);
        self.streams.get(at % self.streams.len().max(1)).copied()
    }

    fn step(&mut self) -> Option<()> {
        match self.script.byte()? % 12 {
            0 | 1 => {
                let frame = self.script.frame()?;
                self.lan.arrive(&frame);
            }
            2 | 3 => self.send()?,
            4 => {
                let ring = usize::from(self.script.byte()?) % self.lan.lanes.len();
                self.lan.run(ring);
            }
            5 => self.make_link()?,
            6 => self.delete_link()?,
            7 => self.change_link()?,
            8 => self.change_stream()?,
            9 => self.pass_time()?,
            10 => self.change_card()?,
            _ => self.change_flow()?,
        }
        Some(())
    }

    fn send(&mut self) -> Option<()> {
        let (link, flags) = (self.link()?, self.script.byte()?);
        let frame = self.script.frame()?;
        let ring = usize::from(flags >> 4) % self.lan.lanes.len();
        let flags = TxFlags::from_bits_truncate(flags);
        self.lan.shell.delivered.clear();
        let _ = self.lan.send_by(ring, link, &[frame], flags);
        for (stream, _) in &self.lan.shell.delivered {
            let is_own = self.lan.links.link_of(*stream) == Some(link);
            let watches = self.lan.links.promiscuity(*stream);
            let watches = watches.is_some_and(Promiscuity::is_promiscuous);
            assert!(!is_own || watches, "a frame came back to its sender");
        }
        Some(())
    }

    fn make_link(&mut self) -> Option<()> {
        let (what, vid) = (self.script.byte()?, self.script.byte()?);
        let vid = VlanId::new(u16::from(vid % 4));
        let port = self.lan.port;
        let name = format!("v{}", self.links.len());
        let made = match (what & 1, vid) {
            (0, Some(vid)) => self.lan.links.create_vlan(None, port, vid),
            _ => self.lan.links.create_vnic(&VnicSpec {
                name: &name,
                over: port,
                mac: MacSource::Given(station(what >> 1 & 7)),
                vid,
                rings: RingsWanted::Any,
            }),
        };
        self.links.extend(made);
        Some(())
    }

    fn delete_link(&mut self) -> Option<()> {
        let link = self.link()?;
        if link != self.lan.port && self.lan.links.delete(link).is_ok() {
            self.links.retain(|other| *other != link);
            assert_eq!(self.lan.links.delete(link), Err(LinkError::NotFound));
        }
        Some(())
    }

    fn change_link(&mut self) -> Option<()> {
        let (link, which) = (self.link()?, self.script.byte()?);
        let (name, value) = PROPERTIES[usize::from(which) % PROPERTIES.len()];
        let before = self.lan.links.show_prop(link, name);
        let changed = match which & 0x80 {
            0 => self.lan.links.set_prop(link, name, value),
            _ => self.lan.links.reset_prop(link, name),
        };
        if changed.is_err() {
            assert_eq!(self.lan.links.show_prop(link, name), before);
        }
        if which & 0x40 != 0 {
            let _ = self.lan.links.set_address(link, station(which & 7));
        }
        Some(())
    }

    fn change_stream(&mut self) -> Option<()> {
        let what = self.script.byte()?;
        if what % 8 == 0 || self.streams.is_empty() {
            let link = self.link()?;
            self.streams.extend(self.lan.links.open(link));
            return Some(());
        }
        let stream = self.stream()?;
        let flags = Promiscuity::from_bits_truncate(what >> 3);
        let links = &mut self.lan.links;
        let _ = match what % 8 {
            1 => links.set_passive(stream),
            2 => links.set_exclusive(stream),
            3 | 4 => links.bind(stream, [0x0800, 0x0806, 0x86dd, 0][usize::from(what >> 6)]),
            5 => links.join(stream, MacAddr([0x33, 0x33, 0, 0, 0, what >> 6])),
            6 => links
                .promisc_on(stream, flags)
                .or_else(|_| links.promisc_off(stream, flags)),
            _ => {
                self.streams.retain(|other| *other != stream);
                links.close(stream)
            }
        };
        Some(())
    }

    fn pass_time(&mut self) -> Option<()> {
        let millis = u64::from(self.script.byte()?) * 10;
        self.lan.shell.now += Duration::from_millis(millis);
        let now = self.lan.shell.now;
        self.lan.links.expire(now);
        Some(())
    }

    fn change_card(&mut self) -> Option<()> {
        let what = self.script.byte()?;
        if let Some(card) = &self.lan.card {
            card.set_sending(what & 1 == 0);
            card.set_refusing(what & 6 == 6);
        }
        self.lan.shell.backlog = usize::from(what >> 3) * 20;
        Some(())
    }

    fn change_flow(&mut self) -> Option<()> {
        let (link, what) = (self.link()?, self.script.byte()?);
        let name = format!("f{}", what % 4);
        let rule = Rule::parse(RULES[usize::from(what >> 2) % RULES.len()]);
        let links = &mut self.lan.links;
        let _ = match (what & 0xc0, rule) {
            (0, _) => links.remove_flow(&name),
            (0x40, _) => links.set_flow_prop(&name, "maxbw", "2M"),
            (_, Ok(rule)) => links.add_flow(link, &name, rule, FlowProps::default()),
            (_, Err(error)) => panic!("{error:?}"),
        };
        Some(())
    }

    fn check(&mut self) {
        for lane in &self.lan.lanes {
            assert!(lane.waiting(&self.lan.shell) <= self.lan.shell.backlog + 1024 * 64);
        }
        if self.lan.shell.delivered.len() > 256 {
            self.lan.shell.delivered.clear();
        }
        if let Some(card) = &self.lan.card {
            card.take_sent();
        }
    }

    /// Once nothing is in the way any more, no frame waits for ever.
    fn drain(&mut self) {
        self.lan.shell.backlog = 0;
        if let Some(card) = &self.lan.card {
            card.set_sending(true);
            card.set_refusing(false);
        }
        for link in self.links.clone() {
            let reset = self.lan.links.reset_prop(link, "maxbw");
            assert_eq!(reset, Ok(()));
            assert_eq!(self.lan.links.remove_flows_of(link), Ok(()));
        }
        self.lan.shell.now += Duration::from_secs(10);
        self.lan.settle();
        for (ring, lane) in (0..).zip(&self.lan.lanes) {
            assert_eq!((lane.waiting(&self.lan.shell), lane.unsent()), (0, 0));
            let left = self.lan.card.as_ref().map(|card| card.waiting(ring));
            assert_eq!(left.unwrap_or(0), 0, "frames sleep in ring {ring}");
        }
    }

    /// Everything is taken down; then all buffers are home.
    fn end(mut self) {
        self.drain();
        for stream in std::mem::take(&mut self.streams) {
            assert_eq!(self.lan.links.close(stream), Ok(()));
        }
        for link in std::mem::take(&mut self.links) {
            if link != self.lan.port {
                assert_eq!(self.lan.links.delete(link), Ok(()));
            }
        }
        assert_eq!(self.lan.links.delete(self.lan.port), Ok(()));
        let Lan {
            lanes,
            card,
            shell,
            links,
            ..
        } = self.lan;
        drop((lanes, links, card));
        let super::Shell {
            pool,
            delivered,
            snooped,
            ..
        } = shell;
        drop((delivered, snooped));
        assert_eq!(pool.used(), 0, "buffers were lost");
    }
}
