//! What virtual functions ask for, and who gets it.

use hal::Registers;
use intel::filters::Filters;

use super::{Pools, mailbox};
use crate::message::{
    self, KIND, MAY_SEND, Message, NO, RESET, SET_LENGTH, SET_MAC, SET_MULTICAST, SET_VLAN, VLAN,
    YES,
};

/// The longest frame that the card takes: with a tag and FCS.
const FRAME_BYTES_MAX: u32 = 1522;

/// Why a request is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Refusal {
    TooEarly,
    BadAddress,
    NoFilter,
    TooLong,
    Unknown,
}

impl Pools {
    /// Answers the request that lies in a mailbox.
    pub(super) fn answer(&mut self, registers: &impl Registers, filters: &mut Filters, vf: u16) {
        let Some(message) = mailbox::read(registers, vf) else {
            self.counted.held += 1;
            return;
        };
        let first = message[0];
        if first & (YES | NO) != 0 {
            self.counted.no_request += 1;
            return mailbox::drop_message(registers, vf);
        }
        if first == RESET {
            return self.begin(registers, filters, vf);
        }
        let granted = self.grant(registers, filters, vf, &message);
        let verdict = match granted {
            Ok(()) => YES | MAY_SEND,
            Err(Refusal::TooEarly) => NO,
            Err(_) => NO | MAY_SEND,
        };
        self.count(granted);
        let mut answer = message;
        answer[0] = first | verdict;
        mailbox::answer(registers, vf, &answer, 1);
    }

    fn count(&mut self, granted: Result<(), Refusal>) {
        let counted = &mut self.counted;
        let place = match granted {
            Ok(()) => &mut counted.granted,
            Err(Refusal::TooEarly) => &mut counted.too_early,
            Err(Refusal::BadAddress) => &mut counted.bad_address,
            Err(Refusal::NoFilter) => &mut counted.no_filter,
            Err(Refusal::TooLong) => &mut counted.too_long,
            Err(Refusal::Unknown) => &mut counted.unknown,
        };
        *place += 1;
    }

    /// A virtual function begins: whatever it had is gone, and it hears its address.
    fn begin(&mut self, registers: &impl Registers, filters: &mut Filters, vf: u16) {
        self.forget(registers, filters, vf);
        let Some(guest) = self.guests.get_mut(usize::from(vf)) else {
            return;
        };
        let is_free = !filters.has_address(guest.mac);
        guest.may_send = is_free;
        guest.write(registers, vf);
        let (verdict, mac) = match is_free {
            true => (YES, guest.mac),
            false => (NO, [0; 6]),
        };
        self.count(if is_free {
            Ok(())
        } else {
            Err(Refusal::BadAddress)
        });
        mailbox::answer(registers, vf, &message::with_mac(RESET | verdict, mac), 3);
    }

    /// A virtual function has to begin anew, if it goes on at all.
    pub(super) fn forget(&mut self, registers: &impl Registers, filters: &mut Filters, vf: u16) {
        let Some(guest) = self.guests.get_mut(usize::from(vf)) else {
            return;
        };
        let had_groups = guest.groups().next().is_some();
        guest.forget();
        guest.write(registers, vf);
        if had_groups {
            self.tell_groups(registers, filters);
        }
        if self.vlans.leave_all(vf) {
            // Fewer filters always fit.
            let _ = self.tell_vlans(registers, filters);
        }
    }

    fn grant(
        &mut self,
        registers: &impl Registers,
        filters: &mut Filters,
        vf: u16,
        message: &Message,
    ) -> Result<(), Refusal> {
        let guest = self.guests.get(usize::from(vf));
        if !guest.is_some_and(|guest| guest.may_send) {
            return Err(Refusal::TooEarly);
        }
        match message[0] & KIND {
            SET_MAC if message::detail(message[0]) == 0 => {
                self.set_mac(registers, filters, vf, message::mac(message))
            }
            SET_MULTICAST => {
                self.set_groups(registers, filters, vf, message);
                Ok(())
            }
            SET_VLAN => self.set_vlan(registers, filters, vf, message),
            SET_LENGTH if message[1] <= FRAME_BYTES_MAX => Ok(()),
            SET_LENGTH => Err(Refusal::TooLong),
            _ => Err(Refusal::Unknown),
        }
    }

    fn set_mac(
        &mut self,
        registers: &impl Registers,
        filters: &Filters,
        vf: u16,
        mac: [u8; 6],
    ) -> Result<(), Refusal> {
        let is_station = mac[0] & 1 == 0 && mac != [0; 6];
        let of_others = (0..).zip(&self.guests);
        let mut of_others = of_others.filter(|(other, _)| *other != vf);
        let is_taken = filters.has_address(mac) || of_others.any(|(_, other)| other.mac == mac);
        if !is_station || is_taken {
            return Err(Refusal::BadAddress);
        }
        if let Some(guest) = self.guests.get_mut(usize::from(vf)) {
            guest.mac = mac;
            guest.write(registers, vf);
        }
        Ok(())
    }

    fn set_groups(
        &mut self,
        registers: &impl Registers,
        filters: &mut Filters,
        vf: u16,
        message: &Message,
    ) {
        if let Some(guest) = self.guests.get_mut(usize::from(vf)) {
            guest.set_groups(message);
            guest.write(registers, vf);
        }
        self.tell_groups(registers, filters);
    }

    fn set_vlan(
        &mut self,
        registers: &impl Registers,
        filters: &mut Filters,
        vf: u16,
        message: &Message,
    ) -> Result<(), Refusal> {
        let id = (message[1] & VLAN) as u16;
        let is_done = match message::detail(message[0]) {
            0 => {
                self.vlans.leave(vf, id);
                true
            }
            _ => self.vlans.join(vf, id),
        };
        let told = self.tell_vlans(registers, filters);
        match is_done && told.is_ok() {
            true => Ok(()),
            false => Err(Refusal::NoFilter),
        }
    }
}
