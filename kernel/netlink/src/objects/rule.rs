//! Rules: which table is asked when. They are fixed, as Linux has them at the start.

use netlink::{Dump, Progress, Rule, Writer};

const V4: u8 = 2;
const V6: u8 = 10;
/// `FR_ACT_TO_TBL`.
const TO_TABLE: u8 = 1;
/// `RTPROT_KERNEL`.
const BY_KERNEL: u8 = 2;
/// All routes count, whatever their prefix.
const SUPPRESS_NONE: u32 = u32::MAX;

/// Family, priority, table: first the one to ourselves, then the main one; IPv4 has a third,
/// which is empty.
const RULES: [(u8, u32, u32); 5] = [
    (V4, 0, 255),
    (V4, 32_766, 254),
    (V4, 32_767, 253),
    (V6, 0, 255),
    (V6, 32_766, 254),
];

/// Which rules a dump shows.
#[derive(Clone, Debug)]
pub(crate) struct DumpFilter {
    family: u8,
}

impl DumpFilter {
    pub fn of(asked: &Rule<'_>) -> Self {
        Self {
            family: asked.family,
        }
    }

    pub fn fill(&self, dump: &Dump, from: usize, to: &mut Writer<'_>) -> Progress {
        let wanted = RULES
            .into_iter()
            .filter(|(family, ..)| self.family == 0 || self.family == *family);
        let rules = wanted.map(|(family, priority, table)| Rule {
            family,
            table,
            action: TO_TABLE,
            priority: (priority != 0).then_some(priority),
            suppress_prefix_len: Some(SUPPRESS_NONE),
            protocol: Some(BY_KERNEL),
            ..Rule::default()
        });
        dump.fill(to, rules.skip(from))
    }
}
