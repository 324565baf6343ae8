//! Names of links.

use alloc::format;
use alloc::string::String;

use super::{LinkError, Links};
use crate::vlan::VlanId;

/// Bytes of a name.
const NAME_BYTES_MAX: usize = 31;

impl Links {
    pub(super) fn check_name(&self, name: &str) -> Result<(), LinkError> {
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
}

/// `bge1` in VLAN 2 is `bge2001`.
pub(super) fn default_vlan_name(port: &str, vid: VlanId) -> Option<String> {
    let driver = port.trim_end_matches(|digit: char| digit.is_ascii_digit());
    let unit: u32 = port[driver.len()..].parse().ok()?;
    let number = u32::from(vid.get()) * 1000;
    Some(format!("{driver}{}", number.checked_add(unit)?))
}
