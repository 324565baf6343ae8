//! Multicast listener discovery for IPv6: version 2 (RFC 3810), and what of version 1
//! (RFC 2710) a host needs beside an old router.
//!
//! We take part for any source, so reports name groups and no sources. Messages are
//! ICMPv6 messages whose checksum was checked.

use core::net::Ipv6Addr;

use base::Duration;

use crate::Icmpv6View;
use crate::bytes::{ipv6_at, put, put_u16, u8_at, u16_at};
use crate::membership::{RecordKind, code_to_units};

const QUERY: u8 = 130;
const REPORT_V1: u8 = 131;
const DONE_V1: u8 = 132;
const REPORT_V2: u8 = 143;

const V1_BYTES: usize = 24;
const V2_QUERY_BYTES: usize = 28;
const V2_REPORT_BYTES: usize = 8;
const RECORD_BYTES: usize = 20;

/// All routers that speak version 2 (RFC 3810 5.2.14).
pub const MLD_ROUTERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0x16);

/// Hop-by-hop options with a router alert, that every message carries (RFC 2711).
pub const MLD_HOP_BY_HOP: [u8; 8] = [58, 0, 5, 2, 0, 0, 1, 0];

/// A router's question.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MldQuery {
    /// Asked about; `None` for all.
    pub group: Option<Ipv6Addr>,
    /// Answers are spread over this time.
    pub max_delay: Duration,
    /// The router speaks version 1 only.
    pub is_v1: bool,
}

impl MldQuery {
    /// Reads a message; `None` if it is no query.
    pub fn parse(message: &Icmpv6View<'_>) -> Option<Self> {
        let bytes = message.bytes();
        let is_v1 = bytes.len() == V1_BYTES;
        if message.kind() != QUERY || !(is_v1 || bytes.len() >= V2_QUERY_BYTES) {
            return None;
        }
        let code = u16_at(bytes, 4);
        let millis = if is_v1 {
            u32::from(code)
        } else {
            code_to_units(u32::from(code), 12)
        };
        let group = ipv6_at(bytes, 8);
        Some(Self {
            group: (!group.is_unspecified()).then_some(group),
            max_delay: Duration::from_millis(u64::from(millis)),
            is_v1,
        })
    }
}

/// Whether the message is a report of another listener.
pub fn is_mld_report(message: &Icmpv6View<'_>) -> bool {
    matches!(message.kind(), REPORT_V1 | DONE_V1 | REPORT_V2)
}

/// What we tell routers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MldReport<'a> {
    /// Version 2: one record of the kind for each group.
    V2(RecordKind, &'a [Ipv6Addr]),
    /// Version 1: we listen.
    V1(Ipv6Addr),
    /// Version 1: we do not any more.
    DoneV1(Ipv6Addr),
}

impl MldReport<'_> {
    /// Bytes that it takes.
    pub const fn len(&self) -> usize {
        match self {
            Self::V2(_, groups) => V2_REPORT_BYTES + RECORD_BYTES * groups.len(),
            Self::V1(_) | Self::DoneV1(_) => V1_BYTES,
        }
    }

    /// No report is empty.
    pub const fn is_empty(&self) -> bool {
        false
    }

    /// Writes [`len`](Self::len) bytes, the checksum left zero.
    pub fn emit(&self, bytes: &mut [u8]) {
        bytes.fill(0);
        match self {
            Self::V2(kind, groups) => {
                put(bytes, 0, [REPORT_V2]);
                put_u16(bytes, 6, groups.len() as u16);
                for (index, group) in groups.iter().enumerate() {
                    let at = V2_REPORT_BYTES + RECORD_BYTES * index;
                    put(bytes, at, [kind.number()]);
                    put(bytes, at + 4, group.octets());
                }
            }
            Self::V1(group) => {
                put(bytes, 0, [REPORT_V1]);
                put(bytes, 8, group.octets());
            }
            Self::DoneV1(group) => {
                put(bytes, 0, [DONE_V1]);
                put(bytes, 8, group.octets());
            }
        }
    }
}

/// The kinds and groups of a version 2 report's records; of a version 1 message, its group.
pub fn mld_records<'a>(
    message: &Icmpv6View<'a>,
) -> impl Iterator<Item = (RecordKind, Ipv6Addr)> + 'a {
    let bytes = message.bytes();
    let (count, at, size) = match message.kind() {
        REPORT_V2 => (usize::from(u16_at(bytes, 6)), V2_REPORT_BYTES, RECORD_BYTES),
        REPORT_V1 | DONE_V1 => (1, 4, RECORD_BYTES),
        _ => (0, 0, 1),
    };
    let fits = bytes.len().saturating_sub(at) / size;
    (0..count.min(fits)).map(move |index| {
        let record = at + index * size;
        let kind = match u8_at(bytes, 0) {
            REPORT_V1 => RecordKind::IsExclude,
            DONE_V1 => RecordKind::ToInclude,
            _ => RecordKind::from_number(u8_at(bytes, record)),
        };
        (kind, ipv6_at(bytes, record + 4))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fill_icmpv6_checksum;

    const HOST: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
    const GROUP: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0xfb);

    fn view(bytes: &mut [u8]) -> Icmpv6View<'_> {
        fill_icmpv6_checksum(bytes, HOST, MLD_ROUTERS);
        Icmpv6View::parse(bytes, HOST, MLD_ROUTERS).expect("a message")
    }

    #[test]
    fn the_length_of_a_query_tells_its_version() {
        let mut bytes = [0; V2_QUERY_BYTES];
        bytes[0] = QUERY;
        put_u16(&mut bytes, 4, 10_000);
        put(&mut bytes, 8, GROUP.octets());
        let query = MldQuery::parse(&view(&mut bytes)).expect("a query");
        assert_eq!((query.group, query.is_v1), (Some(GROUP), false));
        assert_eq!(query.max_delay, Duration::from_secs(10));
        bytes[2..4].fill(0);
        let query = MldQuery::parse(&view(&mut bytes[..V1_BYTES])).expect("a query");
        assert!(query.is_v1);
        bytes[2..4].fill(0);
        assert_eq!(MldQuery::parse(&view(&mut bytes[..V1_BYTES + 2])), None);
    }

    #[test]
    fn reports_read_as_they_were_written() {
        let groups = [GROUP, MLD_ROUTERS];
        for (report, kind, count) in [
            (
                MldReport::V2(RecordKind::ToExclude, &groups),
                RecordKind::ToExclude,
                2,
            ),
            (MldReport::V1(GROUP), RecordKind::IsExclude, 1),
            (MldReport::DoneV1(GROUP), RecordKind::ToInclude, 1),
        ] {
            let mut bytes = [0xff; 64];
            let bytes = &mut bytes[..report.len()];
            report.emit(bytes);
            let message = view(bytes);
            assert!(is_mld_report(&message));
            let records = mld_records(&message);
            assert!(records.eq(groups.into_iter().take(count).map(|group| (kind, group))));
        }
    }

    #[test]
    fn a_report_that_names_more_records_than_it_has_ends_early() {
        let mut bytes = [0; V2_REPORT_BYTES + RECORD_BYTES];
        MldReport::V2(RecordKind::IsExclude, &[GROUP]).emit(&mut bytes);
        put_u16(&mut bytes, 6, u16::MAX);
        assert_eq!(mld_records(&view(&mut bytes)).count(), 1);
    }
}
