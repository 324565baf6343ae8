//! A model of the card's registers: they act as section 8 says, and what a driver must
//! not do is noted as a complaint.

extern crate std;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::format;
use std::rc::Rc;
use std::string::String;
use std::vec;
use std::vec::Vec;

use hal::Registers;
use hal::sim::SimMemory;

use crate::registers::*;
use intel::filters::*;
use intel::link::*;

pub(super) const QUEUES: usize = 16;
/// Offsets in a queue's registers.
pub(super) const BASE_LOW: usize = 0x00;
pub(super) const BASE_HIGH: usize = 0x04;
pub(super) const LENGTH: usize = 0x08;
pub(super) const SPLIT: usize = 0x0c;
pub(super) const HEAD: usize = 0x10;
pub(super) const TAIL: usize = 0x18;
pub(super) const QUEUE_CONTROL: usize = 0x28;
pub(super) const DROPPED: usize = 0x30;
const QUEUE_ENABLE: u32 = 1 << 25;
const RX: std::ops::Range<usize> = 0xc000..0xc400;
const TX: std::ops::Range<usize> = 0xe000..0xe400;
const STATISTICS: std::ops::Range<usize> = 0x4000..0x4100;
pub(super) const MESSAGES: usize = 25;

pub(super) struct Model {
    words: Vec<u32>,
    pub(super) memory: SimMemory,
    /// How often each message was sent.
    pub(super) messages: [u32; MESSAGES],
    /// What the driver did against the rules.
    pub(super) complaints: Vec<String>,
    /// Writes in their order, to look at the order.
    pub(super) writes: Vec<(usize, u32)>,
    pub(super) contexts: BTreeMap<(usize, usize), [u64; 2]>,
    /// The card does not come out of its reset.
    pub(super) ignores_reset: bool,
    /// Queues do not stop.
    pub(super) ignores_stop: bool,
    /// The EEPROM holds no address.
    pub(super) has_no_address: bool,
    /// The link goes down right after the next access to this register.
    pub(super) unplug_after: Option<usize>,
}

impl Model {
    pub(super) fn new(memory: SimMemory) -> Self {
        let mut model = Self {
            words: vec![0xdead_beef; BYTES / 4],
            memory,
            messages: [0; MESSAGES],
            complaints: Vec::new(),
            writes: Vec::new(),
            contexts: BTreeMap::new(),
            ignores_reset: false,
            ignores_stop: false,
            has_no_address: false,
            unplug_after: None,
        };
        model.reset();
        model
    }

    /// Everything but moderation and the tables of filters, which keep what was in them.
    fn reset(&mut self) {
        let is_kept = |at: usize| {
            (MULTICAST_TABLE..MULTICAST_TABLE + 512).contains(&at)
                || (VLAN_TABLE..VLAN_TABLE + 512).contains(&at)
                || (UNICAST_TABLE..UNICAST_TABLE + 512).contains(&at)
                || (eitr(0)..eitr(MESSAGES as u16)).contains(&at)
        };
        for (index, word) in self.words.iter_mut().enumerate() {
            if !is_kept(4 * index) {
                *word = 0;
            }
        }
        self.put(rx_ring(0) + QUEUE_CONTROL, QUEUE_ENABLE | 1 << 16);
        self.put(tx_ring(0) + QUEUE_CONTROL, QUEUE_ENABLE);
        if !self.has_no_address {
            self.put(address(0), 0x1200_5452);
            self.put(address(0) + ADDRESS_HIGH, 0x8000_5634);
        }
        self.put(
            STATUS,
            STATUS_MASTER | STATUS_DUPLEX | 2 << STATUS_SPEED_SHIFT,
        );
        self.contexts.clear();
        self.reset_pools();
    }

    pub(super) fn get(&self, offset: usize) -> u32 {
        self.words[offset / 4]
    }

    pub(super) fn put(&mut self, offset: usize, value: u32) {
        self.words[offset / 4] = value;
    }

    pub(super) fn count(&mut self, offset: usize, by: u32) {
        self.put(offset, self.get(offset) + by);
    }

    pub(super) fn is_enabled(&self, queue: usize) -> bool {
        self.get(queue + QUEUE_CONTROL) & QUEUE_ENABLE != 0
    }

    fn complain(&mut self, what: &str, offset: usize) {
        self.complaints.push(format!("{what} at {offset:#x}"));
    }

    pub(super) fn read(&mut self, offset: usize) -> u32 {
        let value = self.get(offset);
        self.forget_read(offset);
        let is_queue = RX.contains(&offset) && offset % 0x40 == DROPPED;
        if STATISTICS.contains(&offset) || offset == ICR || offset == EICR || is_queue {
            self.put(offset, 0);
        }
        self.unplug_if_after(offset);
        value
    }

    fn unplug_if_after(&mut self, offset: usize) {
        if self.unplug_after.take_if(|at| *at == offset).is_some() {
            self.unplug();
        }
    }

    pub(super) fn unplug(&mut self) {
        self.put(STATUS, self.get(STATUS) & !STATUS_LINK_UP);
        self.raise_other(CAUSE_LINK);
    }

    pub(super) fn write(&mut self, offset: usize, value: u32) {
        self.writes.push((offset, value));
        match offset {
            CTRL => self.control(value),
            EIMS => self.send_messages_after(|model| model.put(EIMS, model.get(EIMS) | value)),
            EIMC => self.put(EIMS, self.get(EIMS) & !value),
            EICR => self.put(EICR, self.get(EICR) & !value),
            IMS => self.put(IMS, self.get(IMS) | value),
            IMC => self.put(IMS, self.get(IMS) & !value),
            MDIC => {
                self.put(MDIC, value | 1 << 28);
                self.put(STATUS, self.get(STATUS) | STATUS_LINK_UP);
                self.raise_other(CAUSE_LINK);
            }
            EIAC | EIAM if self.get(GPIE) & GPIE_MSIX == 0 => {
                self.complain("a message's mode before MSI-X is on", offset);
            }
            _ if super::model_pools::is_pools(offset) => self.write_pools(offset, value),
            ICR | STATUS => self.complain("a write to a register for reading", offset),
            _ if RX.contains(&offset) || TX.contains(&offset) => self.queue(offset, value),
            _ => self.put(offset, value),
        }
        self.unplug_if_after(offset);
    }

    fn control(&mut self, value: u32) {
        self.put(CTRL, value);
        if value & CTRL_MASTER_OFF != 0 {
            self.put(STATUS, self.get(STATUS) & !STATUS_MASTER);
        }
        if value & CTRL_RESET != 0 && !self.ignores_reset {
            if self.get(STATUS) & STATUS_MASTER != 0 {
                self.complain("a reset amid transfers", CTRL);
            }
            self.reset();
        }
    }

    fn queue(&mut self, offset: usize, value: u32) {
        let queue = offset & !0x3f;
        let is_enabled = self.is_enabled(queue);
        match offset - queue {
            QUEUE_CONTROL if is_enabled && self.ignores_stop => {
                self.put(offset, value | QUEUE_ENABLE);
            }
            QUEUE_CONTROL if value & QUEUE_ENABLE != 0 && self.get(queue + LENGTH) == 0 => {
                self.complain("a queue without a ring", offset);
            }
            QUEUE_CONTROL => self.put(offset, value),
            TAIL if !is_enabled && value != 0 => self.complain("a tail that is ignored", offset),
            TAIL => self.put(offset, value),
            BASE_LOW if !value.is_multiple_of(128) => self.complain("a ring out of line", offset),
            _ if is_enabled => self.complain("a change under a running queue", offset),
            _ => self.put(offset, value),
        }
    }

    /// A cause of message `message`.
    pub(super) fn raise(&mut self, message: u32) {
        self.send_messages_after(|model| model.put(EICR, model.get(EICR) | 1 << message));
    }

    /// Another cause. One that is noted already is no news.
    pub(super) fn raise_other(&mut self, cause: u32) {
        let is_news = self.get(ICR) & self.get(IMS) & cause == 0;
        self.put(ICR, self.get(ICR) | cause);
        let entry = self.get(IVAR_OTHER) >> IVAR_OTHER_SHIFT & 0xff;
        if is_news && self.get(IMS) & cause != 0 && entry & IVAR_VALID != 0 {
            self.raise(entry & 0x1f);
        }
    }

    /// Those whose causes this brings up. One that stands already is no news.
    fn send_messages_after(&mut self, change: impl FnOnce(&mut Self)) {
        let before = self.get(EICR) & self.get(EIMS);
        change(self);
        let due = self.get(EICR) & self.get(EIMS) & !before;
        for message in (0..MESSAGES).filter(|message| due >> message & 1 != 0) {
            let bit = 1 << message;
            self.messages[message] += 1;
            self.put(EICR, self.get(EICR) & !(bit & self.get(EIAC)));
            if self.get(GPIE) & GPIE_AUTO_MASK != 0 {
                self.put(EIMS, self.get(EIMS) & !(bit & self.get(EIAM)));
            }
        }
    }
}

/// The driver's side of the model.
#[derive(Clone)]
pub(super) struct Window {
    pub(super) model: Rc<RefCell<Model>>,
    base: usize,
    bytes: usize,
}

impl Window {
    pub(super) fn new(model: Model, bytes: usize) -> Self {
        Self {
            model: Rc::new(RefCell::new(model)),
            base: 0,
            bytes,
        }
    }

    fn at(&self, offset: usize) -> usize {
        assert!(
            offset.is_multiple_of(4) && offset + 4 <= self.bytes,
            "{offset:#x}"
        );
        self.base + offset
    }
}

impl Registers for Window {
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
        self.model.borrow_mut().read(self.at(offset))
    }

    fn write32(&self, offset: usize, value: u32) {
        self.model.borrow_mut().write(self.at(offset), value);
    }
}
