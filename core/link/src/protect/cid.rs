//! DHCP identities: client identifiers (RFC 2132) and DUIDs (RFC 8415, section 11).

use alloc::vec::Vec;

use wire::MacAddr;

/// Bytes of an identity at most: DUIDs end at 130.
const ID_BYTES_MAX: usize = 130;
const ETHERNET: u8 = 1;

/// An identity that the administrator allows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClientId(Vec<u8>);

impl ClientId {
    /// From one of the forms `0x` with an even number of hex digits; `1.TYPE.TIME.MAC`,
    /// `2.ENTERPRISE.HEX`, `3.TYPE.MAC` (DUIDs); anything else is taken as it is.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = match (text.strip_prefix("0x"), text.split_once('.')) {
            (Some(digits), _) => hex(digits)?,
            (None, Some(("1", rest))) => link_time(rest)?,
            (None, Some(("2", rest))) => enterprise(rest)?,
            (None, Some(("3", rest))) => link(rest)?,
            _ => text.as_bytes().to_vec(),
        };
        (!bytes.is_empty() && bytes.len() <= ID_BYTES_MAX).then_some(Self(bytes))
    }

    /// The identity as it stands in a message.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

fn hex(digits: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    if !rest.is_empty() || !is_hex {
        return None;
    }
    let byte = |pair: &[u8; 2]| {
        let digits = core::str::from_utf8(pair).ok()?;
        u8::from_str_radix(digits, 16).ok()
    };
    pairs.iter().map(byte).collect()
}

fn mac(text: &str) -> Option<Vec<u8>> {
    let bytes = text.split(':').map(|part| {
        let fits = (1..=2).contains(&part.len()) && part.bytes().all(|c| c.is_ascii_hexdigit());
        fits.then(|| u8::from_str_radix(part, 16).ok()).flatten()
    });
    bytes.collect()
}

fn link_time(rest: &str) -> Option<Vec<u8>> {
    let (hardware, rest) = rest.split_once('.')?;
    let (time, address) = rest.split_once('.')?;
    let mut bytes = [0, 1].to_vec();
    bytes.extend_from_slice(&hardware.parse::<u16>().ok()?.to_be_bytes());
    bytes.extend_from_slice(&time.parse::<u32>().ok()?.to_be_bytes());
    bytes.extend(mac(address)?);
    Some(bytes)
}

fn enterprise(rest: &str) -> Option<Vec<u8>> {
    let (number, id) = rest.split_once('.')?;
    let mut bytes = [0, 2].to_vec();
    bytes.extend_from_slice(&number.parse::<u32>().ok()?.to_be_bytes());
    bytes.extend(hex(id)?);
    Some(bytes)
}

fn link(rest: &str) -> Option<Vec<u8>> {
    let (hardware, address) = rest.split_once('.')?;
    let mut bytes = [0, 3].to_vec();
    bytes.extend_from_slice(&hardware.parse::<u16>().ok()?.to_be_bytes());
    bytes.extend(mac(address)?);
    Some(bytes)
}

/// Whether a DHCPv4 client identifier is the station's own: type 1 and the address.
pub(super) fn is_own_id(id: &[u8], mac: MacAddr) -> bool {
    id.split_first() == Some((&ETHERNET, &mac.0))
}

/// Whether a DUID is made from the station's own address.
pub(super) fn is_own_duid(duid: &[u8], mac: MacAddr) -> bool {
    match duid {
        [0, 1, 0, ETHERNET, _, _, _, _, address @ ..] => address == mac.0,
        [0, 3, 0, ETHERNET, address @ ..] => address == mac.0,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_forms_of_an_identity_are_read() {
        let bytes = |text| ClientId::parse(text).map(|id| id.bytes().to_vec());
        assert_eq!(bytes("0x01ab"), Some([1, 0xab].to_vec()));
        assert_eq!(bytes("myhost"), Some(b"myhost".to_vec()));
        let link_time = [0, 1, 0, 1, 0, 0, 0, 9, 2, 0, 0, 0, 0, 7];
        assert_eq!(bytes("1.1.9.2:0:0:0:0:7"), Some(link_time.to_vec()));
        assert_eq!(
            bytes("2.9.beef"),
            Some([0, 2, 0, 0, 0, 9, 0xbe, 0xef].to_vec())
        );
        assert_eq!(
            bytes("3.1.2:0:0:0:0:7"),
            Some([0, 3, 0, 1, 2, 0, 0, 0, 0, 7].to_vec())
        );
        for bad in [
            "", "0x1", "0xgg", "0x", "0x+1", "1.1.2:0", "2.x.00", "3.1.zz",
        ] {
            assert_eq!(bytes(bad), None, "{bad}");
        }
    }
}
