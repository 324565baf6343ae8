//! Device control and status, as far as they are of the wire: registers 0 and 8 (13.4.1 and
//! 13.4.2 of the 8254x's manual, 8.2.1 and 8.2.2 of the 82576's datasheet).

use hal::{LinkState, Registers};

/// Device control.
pub const CTRL: usize = 0x0000;
/// Takes VLAN tags out of received frames, and puts in those that descriptors ask for.
pub const CTRL_HANDLE_TAGS: u32 = 1 << 30;
/// Device status.
pub const STATUS: usize = 0x0008;
/// Both directions at once.
pub const STATUS_DUPLEX: u32 = 1 << 0;
/// Somebody is at the other end.
pub const STATUS_LINK_UP: u32 = 1 << 1;
/// Two bits of speed.
pub const STATUS_SPEED_SHIFT: u32 = 6;

/// What the card hears of the wire.
pub fn state(registers: &impl Registers) -> LinkState {
    let status = registers.read32(STATUS);
    if status & STATUS_LINK_UP == 0 {
        return LinkState::Down;
    }
    LinkState::Up {
        mbps: match status >> STATUS_SPEED_SHIFT & 3 {
            0 => 10,
            1 => 100,
            _ => 1000,
        },
        is_duplex: status & STATUS_DUPLEX != 0,
    }
}
