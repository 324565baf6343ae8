//! Messages about ports (section 5.3.6.2): `id[4] event[2] value[2]`, little endian; a name
//! follows where the event is one.

/// Bytes of a message without a name.
pub(crate) const MESSAGE_BYTES: usize = 8;

const DEVICE_READY: u16 = 0;
const PORT_ADD: u16 = 1;
const PORT_REMOVE: u16 = 2;
const PORT_READY: u16 = 3;
const PORT_OPEN: u16 = 6;
const PORT_NAME: u16 = 7;

/// What the driver says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Notice {
    /// The driver works: the device may name its ports.
    DeviceReady,
    /// The driver knows the port.
    PortReady(u32),
    /// Somebody uses the port.
    PortOpen(u32),
}

impl Notice {
    pub(crate) fn encode(self) -> [u8; MESSAGE_BYTES] {
        let (port, event) = match self {
            Self::DeviceReady => (u32::MAX, DEVICE_READY),
            Self::PortReady(port) => (port, PORT_READY),
            Self::PortOpen(port) => (port, PORT_OPEN),
        };
        let mut bytes = [0; MESSAGE_BYTES];
        bytes[..4].copy_from_slice(&port.to_le_bytes());
        bytes[4..6].copy_from_slice(&event.to_le_bytes());
        bytes[6..].copy_from_slice(&1_u16.to_le_bytes());
        bytes
    }
}

/// What the device says of one port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Event<'a> {
    /// It exists.
    Added,
    /// It is gone.
    Removed,
    /// The host holds its end, or has let it go.
    Connected(bool),
    /// What it is called.
    Named(&'a [u8]),
}

impl<'a> Event<'a> {
    /// The port's number and what happened to it; `None` for what we have no use for.
    pub(crate) fn decode(message: &'a [u8]) -> Option<(usize, Self)> {
        let (head, name) = message.split_first_chunk::<MESSAGE_BYTES>()?;
        let [id @ .., e0, e1, v0, v1] = *head;
        let value = u16::from_le_bytes([v0, v1]);
        let event = match u16::from_le_bytes([e0, e1]) {
            PORT_ADD => Self::Added,
            PORT_REMOVE => Self::Removed,
            PORT_OPEN => Self::Connected(value != 0),
            // The specification has no NUL at the end, devices have one.
            PORT_NAME => Self::Named(name.strip_suffix(b"\0").unwrap_or(name)),
            _ => return None,
        };
        Some((u32::from_le_bytes(id) as usize, event))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_loses_its_nul_and_nothing_else() {
        let message = b"\x03\0\0\0\x07\0\x01\0org.x\0";
        assert_eq!(Event::decode(message), Some((3, Event::Named(b"org.x"))));
        assert_eq!(Event::decode(&message[..7]), None);
    }

    #[test]
    fn what_the_driver_says_is_laid_out_as_the_specification_has_it() {
        assert_eq!(Notice::PortOpen(2).encode(), *b"\x02\0\0\0\x06\0\x01\0");
        assert_eq!(Notice::DeviceReady.encode()[4..], [0, 0, 1, 0]);
    }
}
