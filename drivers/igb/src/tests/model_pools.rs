//! The model's pools: mailboxes, the switch between pools and its checks, and a virtual function's
//! own view of the registers.

extern crate std;

use std::cell::RefCell;
use std::rc::Rc;

use hal::Registers;

use super::model::{Model, QUEUE_CONTROL, Window};
use super::model_tx::Sent;
use crate::registers::*;
use crate::registers_pools::*;
use intel::filters::*;
use intel::link::CTRL;

const POOLS: u16 = 8;
const PF_MAILBOXES: std::ops::Range<usize> = 0xc00..0xc20;
const VF_MAILBOXES: std::ops::Range<usize> = 0xc40..0xc60;
const READ_TO_CLEAR: u32 = VF_PF_SENT | VF_PF_TAKEN | 1 << 7;
const PF_VF_HOLDS: u32 = 1 << 2;

/// Whether writing the register does more than to remember.
pub(super) fn is_pools(offset: usize) -> bool {
    let is_mailbox = PF_MAILBOXES.contains(&offset) || VF_MAILBOXES.contains(&offset);
    is_mailbox || [MBVFICR, VFLRE, CTRL_EXT].contains(&offset)
}

impl Model {
    pub(super) fn reset_pools(&mut self) {
        for vf in 0..POOLS as usize {
            self.put(VF_MAILBOX + 4 * vf, VF_PF_IN_RESET);
        }
    }

    pub(super) fn forget_read(&mut self, offset: usize) {
        if VF_MAILBOXES.contains(&offset) {
            self.put(offset, self.get(offset) & !READ_TO_CLEAR);
        }
    }

    pub(super) fn write_pools(&mut self, offset: usize, value: u32) {
        match offset {
            MBVFICR | VFLRE => self.put(offset, self.get(offset) & !value),
            CTRL_EXT => {
                self.put(offset, value);
                if value & CTRL_EXT_RESET_DONE != 0 {
                    (0..POOLS as usize).for_each(|vf| self.put(VF_MAILBOX + 4 * vf, 1 << 7));
                }
            }
            _ if PF_MAILBOXES.contains(&offset) => self.write_pf_mailbox(offset, value),
            _ => self.write_vf_mailbox(offset, value),
        }
    }

    fn write_pf_mailbox(&mut self, offset: usize, value: u32) {
        let theirs = VF_MAILBOXES.start + (offset - PF_MAILBOXES.start);
        let mut seen = self.get(theirs);
        let mut own = self.get(offset);
        seen |= if value & PF_SEND != 0 { VF_PF_SENT } else { 0 };
        seen |= if value & PF_TAKE != 0 { VF_PF_TAKEN } else { 0 };
        if value & PF_SEIZE != 0 {
            seen &= !VF_HOLDS;
            own &= !PF_VF_HOLDS;
        }
        own &= !PF_HOLDS;
        if value & PF_HOLDS != 0 && own & PF_VF_HOLDS == 0 {
            own |= PF_HOLDS;
        }
        self.put(offset, own);
        self.put(theirs, seen);
    }

    fn write_vf_mailbox(&mut self, offset: usize, value: u32) {
        let vf = (offset - VF_MAILBOXES.start) / 4;
        let theirs = pf_mailbox(vf as u16);
        if value & VF_REQUEST != 0 {
            self.put(MBVFICR, self.get(MBVFICR) | 1 << vf);
            self.raise_other(CAUSE_MAILBOX);
        }
        if value & VF_TAKEN != 0 {
            self.put(MBVFICR, self.get(MBVFICR) | 1 << (16 + vf));
        }
        let is_free = self.get(theirs) & PF_HOLDS == 0;
        let holds = value & VF_HOLDS != 0 && is_free;
        let (own, other) = (
            self.get(offset) & !VF_HOLDS,
            self.get(theirs) & !PF_VF_HOLDS,
        );
        self.put(offset, own | if holds { VF_HOLDS } else { 0 });
        self.put(theirs, other | if holds { PF_VF_HOLDS } else { 0 });
    }

    /// A virtual function is reset, by itself or by its bus.
    pub(super) fn reset_vf(&mut self, vf: usize) {
        for ring in [rx_ring(vf as u16), tx_ring(vf as u16)] {
            self.put(ring + QUEUE_CONTROL, 0);
        }
        for register in [VFRE, VFTE] {
            self.put(register, self.get(register) & !(1 << vf));
        }
        self.put(VFLRE, self.get(VFLRE) | 1 << vf);
        self.raise_other(CAUSE_MAILBOX);
    }

    /// To which pools a frame goes.
    pub(super) fn pools_of(&self, frame: &[u8]) -> u32 {
        assert_eq!(self.get(MRQC) & 7, MRQC_POOLS);
        let to: [u8; 6] = frame[..6].try_into().expect("a frame");
        let mut pools = self.pools_of_address(to);
        let bit = u16::from_le_bytes([to[4], to[5]]) >> 4;
        let word = self.get(MULTICAST_TABLE + usize::from(bit) / 32 * 4);
        let accepts = |what: u32| (0..POOLS).filter(move |pool| self.get(vmolr(*pool)) & what != 0);
        match to {
            [255, 255, 255, 255, 255, 255] => pools |= mask(accepts(VMOLR_BROADCAST)),
            [first, ..] if first & 1 != 0 && word >> (bit % 32) & 1 != 0 => {
                pools |= mask(accepts(VMOLR_GROUPS));
            }
            [first, ..] if first & 1 == 0 && pools == 0 => pools = self.default_pool(),
            _ => (),
        }
        if self.get(RCTL) & RCTL_FILTER_VLANS != 0 {
            pools &= match vlan_of(frame) {
                Some(id) => self.pools_in(id),
                None => mask(accepts(VMOLR_UNTAGGED)),
            };
        }
        pools & self.get(VFRE)
    }

    fn default_pool(&self) -> u32 {
        let control = self.get(VT_CTL);
        match control & VT_CTL_NO_DEFAULT {
            0 => 1 << (control >> VT_CTL_DEFAULT_SHIFT & 7),
            _ => 0,
        }
    }

    fn pools_of_address(&self, mac: [u8; 6]) -> u32 {
        let leads = |filter: usize| {
            let low = self.get(address(filter)).to_le_bytes();
            let high = self.get(address(filter) + ADDRESS_HIGH);
            let is_it = mac == *[&low[..], &high.to_le_bytes()[..2]].concat();
            let pools = high >> ADDRESS_POOLS_SHIFT & 0xff;
            if is_it && high & ADDRESS_VALID != 0 {
                pools
            } else {
                0
            }
        };
        (0..ADDRESSES).fold(0, |pools, filter| pools | leads(filter))
    }

    fn pools_in(&self, id: u16) -> u32 {
        let filters = (0..VLVF_FILTERS).map(|filter| self.get(vlvf(filter)));
        let counts = |word: &u32| word & VLVF_VALID != 0 && *word as u16 & 0xfff == id;
        let pools = filters
            .filter(counts)
            .map(|word| word >> VLVF_POOLS_SHIFT & 0xff);
        pools.fold(0, |all, one| all | one)
    }

    /// The switch takes the next frame of a pool's queue, unless it is not this pool's to send.
    pub(super) fn switch(&mut self, pool: u16) -> Option<Sent> {
        if self.get(VFTE) >> pool & 1 == 0 {
            return None;
        }
        let sent = self.send(pool.into())?.remove(0);
        let checks = self.get(DTXSWC);
        let from: [u8; 6] = sent.bytes[6..12].try_into().expect("a frame");
        let own = 1 << pool;
        let is_own = self.pools_of_address(from) & own != 0;
        let is_in = sent
            .tag
            .is_none_or(|id| self.pools_in(id & 0xfff) & own != 0);
        let is_spoofed = checks & own != 0 && !is_own;
        let is_astray = checks >> DTXSWC_VLAN_SHIFT & own != 0 && !is_in;
        (!is_spoofed && !is_astray).then_some(sent)
    }
}

fn mask(pools: impl Iterator<Item = u16>) -> u32 {
    pools.fold(0, |mask, pool| mask | 1 << pool)
}

fn vlan_of(frame: &[u8]) -> Option<u16> {
    let tag = u16::from_be_bytes([frame[14], frame[15]]);
    (frame[12..14] == [0x81, 0]).then_some(tag & 0xfff)
}

/// What a virtual function sees of the model's registers.
#[derive(Clone)]
pub(super) struct VfWindow {
    pub(super) model: Rc<RefCell<Model>>,
    vf: usize,
    base: usize,
    bytes: usize,
    /// What the physical function does whenever the mailbox is read.
    meanwhile: Rc<dyn Fn()>,
}

impl VfWindow {
    pub(super) fn new(physical: &Window, vf: usize, meanwhile: Rc<dyn Fn()>) -> Self {
        Self {
            model: physical.model.clone(),
            vf,
            base: 0,
            bytes: VF_BYTES,
            meanwhile,
        }
    }

    fn shift(&self) -> usize {
        22 - 3 * self.vf
    }

    /// Where the register lies for the model, and how far its bits are shifted.
    fn place(&self, offset: usize) -> (usize, usize) {
        let at = self.base + offset;
        assert!(offset + 4 <= self.bytes, "{offset:#x}");
        match at {
            VF_RX_RING..0x2840 => (rx_ring(self.vf as u16) + at % 0x40, 0),
            VF_TX_RING..0x3840 => (tx_ring(self.vf as u16) + at % 0x40, 0),
            VF_MAILBOX => (VF_MAILBOX + 4 * self.vf, 0),
            VF_MAILBOX_MEMORY..0x840 => (at + 0x40 * self.vf, 0),
            EIMS | EIMC | EIAC | EIAM | EICR => (at, self.shift()),
            _ => (at, 0),
        }
    }
}

impl Registers for VfWindow {
    fn bytes(&self) -> usize {
        self.bytes
    }

    fn window(&self, offset: usize, bytes: usize) -> Option<Self> {
        (offset + bytes <= self.bytes).then(|| Self {
            base: self.base + offset,
            bytes,
            ..self.clone()
        })
    }

    fn read32(&self, offset: usize) -> u32 {
        if self.base + offset == VF_MAILBOX {
            (self.meanwhile)();
        }
        let (at, shift) = self.place(offset);
        self.model.borrow_mut().read(at) >> shift
    }

    fn write32(&self, offset: usize, value: u32) {
        let (at, shift) = self.place(offset);
        let mut model = self.model.borrow_mut();
        match self.base + offset {
            CTRL if value & CTRL_RESET != 0 => model.reset_vf(self.vf),
            at if at == ivar(0) => {
                let message = value & 3 | IVAR_VALID;
                let queue = self.vf as u16;
                model.put(ivar(queue), message + self.shift() as u32);
            }
            at if at == eitr(0) || at == IVAR_OTHER => (),
            _ => model.write(at, value << shift),
        }
    }
}
