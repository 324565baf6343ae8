//! The switch as a name server: which questions it answers itself, and the frames that bring answers.

use wire::{
    ETHERNET_HEADER_BYTES, EtherType, EthernetRepr, IPV4_HEADER_BYTES, Ipv4Repr, MacAddr, Protocol,
    Sum, UDP_HEADER_BYTES, UdpRepr,
};

use super::{Client, DNS_PORT, Dropped, Fabric, Left, Passed, Port, Unanswered};
use crate::names::{Kind, Outcome, Question, Record, reversed};
use crate::network::Lease;

const TTL: u8 = 64;

/// What comes of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resolved<'a> {
    /// The network's own answer.
    Own(Vec<u8>),
    /// Others may know it.
    ByOthers(Unanswered<'a>),
}

impl Fabric {
    /// The frame that brings the resolver's answer to who asked, if that one is still there.
    pub fn answer_frame(&self, client: Client, answer: &[u8]) -> Option<Vec<u8>> {
        let station = self.members.get(&client.member)?;
        let udp_len = u16::try_from(UDP_HEADER_BYTES + answer.len()).ok()?;
        let (src, dst) = (self.network.name_server(), station.lease.address);
        let mut frame = vec![0; ETHERNET_HEADER_BYTES + IPV4_HEADER_BYTES + UDP_HEADER_BYTES];
        let ether = EthernetRepr {
            dst: MacAddr(station.lease.mac),
            src: self.network.switch_station(),
            ether_type: EtherType::Ipv4,
        };
        ether.emit(&mut frame);
        let ip = Ipv4Repr {
            src,
            dst,
            protocol: Protocol::Udp,
            payload_len: udp_len,
            ttl: TTL,
            tos: 0,
        };
        ip.emit(frame.get_mut(ETHERNET_HEADER_BYTES..)?);
        let udp = UdpRepr {
            src_port: DNS_PORT,
            dst_port: client.port,
            payload_len: answer.len() as u16,
        };
        let udp_at = ETHERNET_HEADER_BYTES + IPV4_HEADER_BYTES;
        udp.emit(frame.get_mut(udp_at..)?, 0);
        frame.extend_from_slice(answer);
        let pseudo = Sum::pseudo_v4(src, dst, Protocol::Udp, udp_len.into());
        // All ones stand for a sum of zero, which would say that there is none.
        let sum = match pseudo.bytes(frame.get(udp_at..)?).checksum() {
            0 => u16::MAX,
            sum => sum,
        };
        udp.emit(frame.get_mut(udp_at..)?, sum);
        Some(frame)
    }

    pub(super) fn question<'a>(
        &self,
        client: Client,
        message: &'a [u8],
        send: &mut impl FnMut(Port, &[u8]),
    ) -> Passed<'a> {
        match self.resolve(client, message)? {
            Resolved::Own(answer) => {
                let frame = self.answer_frame(client, &answer).ok_or(Dropped::Nobody)?;
                send(Port::Card(client.member), &frame);
                Ok(None)
            }
            Resolved::ByOthers(unanswered) => Ok(Some(Left::Question(unanswered))),
        }
    }

    /// What a connection asked; `None`, which is counted, for what is no question.
    pub fn question_by_stream<'a>(
        &mut self,
        client: Client,
        message: &'a [u8],
    ) -> Option<Resolved<'a>> {
        match self.resolve(client, message) {
            Ok(resolved) => Some(resolved),
            Err(dropped) => {
                self.count(dropped);
                None
            }
        }
    }

    fn resolve<'a>(&self, client: Client, message: &'a [u8]) -> Result<Resolved<'a>, Dropped> {
        let question = Question::parse(message).ok_or(Dropped::Malformed)?;
        let station = self.members.get(&client.member).ok_or(Dropped::Nobody)?;
        let has_others = station.has_others;
        Ok(match self.own_answer(client, &question) {
            Some((outcome, answer)) if outcome == Outcome::Found || !has_others => {
                Resolved::Own(answer)
            }
            _ => Resolved::ByOthers(Unanswered {
                client,
                message,
                has_others,
            }),
        })
    }

    /// The answer with what machines of other networks have; where there are none, this network's own, or `None` for the host's
    /// resolver.
    pub fn answer_of_others(
        &self,
        client: Client,
        question: &Question,
        found: &[Lease],
    ) -> Option<Vec<u8>> {
        match found {
            [] => self.own_answer(client, question).map(|(_, answer)| answer),
            found => Some({
                let records = records(question.kind, found);
                question.answer(Outcome::Found, &records, client.answer_bytes_max())
            }),
        }
    }

    /// The answer to a question that is the network's own; `None` for the host's resolver.
    fn own_answer(&self, client: Client, question: &Question) -> Option<(Outcome, Vec<u8>)> {
        let (outcome, records) = self.own_records(question)?;
        Some((
            outcome,
            question.answer(outcome, &records, client.answer_bytes_max()),
        ))
    }

    fn own_records(&self, question: &Question) -> Option<(Outcome, Vec<Record>)> {
        if let Some(address) = reversed(&question.name).filter(|own| self.network.contains(*own)) {
            let member = self.member_with(address);
            let name = member.and_then(|(_, station)| station.names.first().cloned());
            return Some(match name.filter(|_| question.kind == Kind::Ptr) {
                Some(name) => (Outcome::Found, vec![Record::Ptr(name)]),
                None => (Outcome::NoSuchName, Vec::new()),
            });
        }
        let suffix = format!(".{}", self.network.name.to_ascii_lowercase());
        let named = |name: &str| {
            let members = self.members.values();
            let called = members.filter(|member| member.names.iter().any(|own| own == name));
            called.map(|member| member.lease).collect::<Vec<Lease>>()
        };
        let short = question.name.strip_suffix(&suffix);
        let leases = match named(&question.name) {
            exact if !exact.is_empty() => exact,
            _ => short.map(named).unwrap_or_default(),
        };
        if !leases.is_empty() {
            return Some((Outcome::Found, records(question.kind, &leases)));
        }
        let is_alone = self.network.alone.is_some();
        let is_own = short.is_some() || !is_alone && !question.name.contains('.');
        is_own.then(|| (Outcome::NoSuchName, Vec::new()))
    }
}

fn records(kind: Kind, leases: &[Lease]) -> Vec<Record> {
    let leases = leases.iter();
    match kind {
        Kind::A => leases.map(|lease| Record::A(lease.address)).collect(),
        Kind::Aaaa => leases
            .filter_map(|lease| lease.address6.map(Record::Aaaa))
            .collect(),
        Kind::Ptr | Kind::Other => Vec::new(),
    }
}
