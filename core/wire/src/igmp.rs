//! Group membership for IPv4: IGMP version 3 (RFC 3376), and what of version 2 (RFC 2236)
//! a host needs beside an old router.
//!
//! We take part for any source, so reports name groups and no sources.

use core::net::Ipv4Addr;

use base::Duration;

use crate::bytes::{ipv4_at, put, put_u16, u8_at, u16_at};
use crate::membership::{RecordKind, code_to_units};
use crate::{Malformed, Sum};

const QUERY: u8 = 0x11;
const REPORT_V2: u8 = 0x16;
const LEAVE_V2: u8 = 0x17;
const REPORT_V3: u8 = 0x22;

const V2_BYTES: usize = 8;
const V3_QUERY_BYTES: usize = 12;
const RECORD_BYTES: usize = 8;

/// All routers that speak version 3.
pub const IGMP_ROUTERS: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 22);
/// All routers, that hear of leaving in version 2.
pub const ALL_ROUTERS_V4: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 2);

/// A router's question, or another host's report.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IgmpView {
    /// Who listens?
    Query {
        /// Asked about; `None` for all.
        group: Option<Ipv4Addr>,
        /// Answers are spread over this time.
        max_delay: Duration,
        /// The router speaks version 2 (or 1) only.
        is_v2: bool,
    },
    /// A host listens or ceases to.
    Report,
}

impl IgmpView {
    /// Checks and reads a whole message.
    pub fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        if bytes.len() < V2_BYTES {
            return Err(Malformed::Truncated);
        }
        if !Sum::new().bytes(bytes).is_valid() {
            return Err(Malformed::Checksum);
        }
        match u8_at(bytes, 0) {
            QUERY => Ok(Self::query(bytes)),
            REPORT_V2 | LEAVE_V2 | REPORT_V3 => Ok(Self::Report),
            _ => Err(Malformed::Version),
        }
    }

    fn query(bytes: &[u8]) -> Self {
        let is_v2 = bytes.len() < V3_QUERY_BYTES;
        let code = u32::from(u8_at(bytes, 1));
        let tenths = match (is_v2, code) {
            // Version 1 leaves the field zero and means ten seconds.
            (true, 0) => 100,
            (true, code) => code,
            (false, code) => code_to_units(code, 4),
        };
        let group = ipv4_at(bytes, 4);
        Self::Query {
            group: (!group.is_unspecified()).then_some(group),
            max_delay: Duration::from_millis(u64::from(tenths) * 100),
            is_v2,
        }
    }
}

/// What we tell routers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IgmpReport<'a> {
    /// Version 3: one record of the kind for each group.
    V3(RecordKind, &'a [Ipv4Addr]),
    /// Version 2: we listen.
    V2(Ipv4Addr),
    /// Version 2: we do not any more.
    LeaveV2(Ipv4Addr),
}

impl IgmpReport<'_> {
    /// Bytes that it takes.
    pub const fn len(&self) -> usize {
        match self {
            Self::V3(_, groups) => V2_BYTES + RECORD_BYTES * groups.len(),
            Self::V2(_) | Self::LeaveV2(_) => V2_BYTES,
        }
    }

    /// No report is empty.
    pub const fn is_empty(&self) -> bool {
        false
    }

    /// Writes [`len`](Self::len) bytes with their checksum.
    pub fn emit(&self, bytes: &mut [u8]) {
        bytes.fill(0);
        match self {
            Self::V3(kind, groups) => {
                put(bytes, 0, [REPORT_V3]);
                put_u16(bytes, 6, groups.len() as u16);
                for (index, group) in groups.iter().enumerate() {
                    let at = V2_BYTES + RECORD_BYTES * index;
                    put(bytes, at, [kind.number()]);
                    put(bytes, at + 4, group.octets());
                }
            }
            Self::V2(group) => {
                put(bytes, 0, [REPORT_V2]);
                put(bytes, 4, group.octets());
            }
            Self::LeaveV2(group) => {
                put(bytes, 0, [LEAVE_V2]);
                put(bytes, 4, group.octets());
            }
        }
        let checksum = Sum::new().bytes(bytes).checksum();
        put_u16(bytes, 2, checksum);
    }
}

/// The kinds and groups of a version 3 report's records; of a version 2 message, its group.
pub fn igmp_records(bytes: &[u8]) -> impl Iterator<Item = (RecordKind, Ipv4Addr)> + '_ {
    let count = match u8_at(bytes, 0) {
        REPORT_V3 => usize::from(u16_at(bytes, 6)),
        _ => 1,
    };
    let at = match u8_at(bytes, 0) {
        REPORT_V3 => V2_BYTES,
        _ => 0,
    };
    let fits = bytes.len().saturating_sub(at) / RECORD_BYTES;
    (0..count.min(fits)).map(move |index| {
        let record = at + index * RECORD_BYTES;
        let kind = match u8_at(bytes, 0) {
            REPORT_V2 => RecordKind::IsExclude,
            LEAVE_V2 => RecordKind::ToInclude,
            _ => RecordKind::from_number(u8_at(bytes, record)),
        };
        (kind, ipv4_at(bytes, record + 4))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROUP: Ipv4Addr = Ipv4Addr::new(239, 1, 2, 3);

    #[test]
    fn the_length_of_a_query_tells_its_version() {
        let mut bytes = [QUERY, 100, 0, 0, 239, 1, 2, 3, 0, 0, 0, 0];
        let sum = Sum::new().bytes(&bytes).checksum();
        put_u16(&mut bytes, 2, sum);
        let query = |is_v2| IgmpView::Query {
            group: Some(GROUP),
            max_delay: Duration::from_secs(10),
            is_v2,
        };
        assert_eq!(IgmpView::parse(&bytes), Ok(query(false)));
        assert_eq!(IgmpView::parse(&bytes[..8]), Ok(query(true)));
        bytes[1] = 99;
        assert_eq!(IgmpView::parse(&bytes), Err(Malformed::Checksum));
    }

    #[test]
    fn reports_read_as_they_were_written() {
        let groups = [GROUP, IGMP_ROUTERS];
        for (report, kind, count) in [
            (
                IgmpReport::V3(RecordKind::ToExclude, &groups),
                RecordKind::ToExclude,
                2,
            ),
            (IgmpReport::V2(GROUP), RecordKind::IsExclude, 1),
            (IgmpReport::LeaveV2(GROUP), RecordKind::ToInclude, 1),
        ] {
            let mut bytes = [0xff; 64];
            let bytes = &mut bytes[..report.len()];
            report.emit(bytes);
            assert_eq!(IgmpView::parse(bytes), Ok(IgmpView::Report));
            let records = igmp_records(bytes);
            assert!(records.eq(groups.into_iter().take(count).map(|group| (kind, group))));
        }
    }
}
