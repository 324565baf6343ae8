//! Addresses as `/proc/net` has them: words of 32 bits as they lie in memory, in hexadecimal.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The address of eight or of 32 digits.
pub fn address(digits: &str) -> Option<IpAddr> {
    let word = |at: usize| {
        let digits = digits.get(at..at + 8)?;
        Some(u32::from_str_radix(digits, 16).ok()?.to_ne_bytes())
    };
    match digits.len() {
        8 => Some(Ipv4Addr::from(word(0)?).into()),
        32 => {
            let mut octets = [0; 16];
            for (index, place) in octets.as_chunks_mut::<4>().0.iter_mut().enumerate() {
                *place = word(8 * index)?;
            }
            Some(Ipv6Addr::from(octets).into())
        }
        _ => None,
    }
}

/// An address and a port, as illumos shows them: a star where there is none.
pub fn end(text: &str) -> Option<String> {
    let (digits, port) = text.split_once(':')?;
    let address = address(digits)?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let host = match address.is_unspecified() {
        true => "*".into(),
        false => address.to_string(),
    };
    match port {
        0 => Some(format!("{host}.*")),
        port => Some(format!("{host}.{port}")),
    }
}
