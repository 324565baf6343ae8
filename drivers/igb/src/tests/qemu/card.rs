//! QEMU's card: its registers, its messages, its wire.

extern crate std;

use std::cell::RefCell;
use std::ops::Range;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant};
use std::vec::Vec;
use std::{env, format, fs, process, thread};

use hal::pci::PciAddress;
use hal::sim::SimMemory;
use hal::{NicParts, QueuePair, Registers};
use mbuf::FreeList;

use super::super::rig::{Noted, receive_noted};
use super::bridge::{Bridge, REGISTERS_AT, Side};
use super::qtest::Qtest;
use crate::registers::{BYTES, MDIC};
use crate::{Control, Pair};
use intel::link::{STATUS, STATUS_LINK_UP};

/// Where message `n` is written: page `n` of the memory below.
const MESSAGES_AT: u32 = 0x10_0000;
const TABLE_AT: u64 = 0xe010_0000;
const MESSAGES: u16 = 9;
/// QEMU takes a frame from the wire when it gets to it; so long is a failure.
const PATIENCE: Duration = Duration::from_secs(30);

/// The card's place on its bus.
const PLACE: PciAddress = PciAddress {
    bus: 0,
    device: 2,
    function: 0,
};

pub(super) struct Card {
    pub(super) bridge: Rc<RefCell<Bridge>>,
    wire: UnixDatagram,
    folder: PathBuf,
    pub(super) memory: SimMemory,
    pub(super) pool: &'static FreeList,
}

impl Card {
    /// `name` is a test's.
    pub(super) fn new(name: &str) -> Self {
        let folder = env::temp_dir().join(format!("igb-{}-{name}", process::id()));
        fs::create_dir_all(&folder).expect("a folder for sockets");
        let wire = UnixDatagram::bind(folder.join("far")).expect("a socket");
        wire.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        let mut qtest = Qtest::start(&folder);
        find(&mut qtest);
        let memory = SimMemory::new();
        let pool = memory.packet_pool(2500);
        let bridge = Rc::new(RefCell::new(Bridge::new(qtest, memory.clone())));
        Self {
            bridge,
            wire,
            folder,
            memory,
            pool,
        }
    }

    pub(super) fn start(&self, pairs: u16) -> (Vec<Pair<Window>>, Control<Window>) {
        let parts = crate::start(self.window(), &self.memory, self.pool, pairs);
        let NicParts { pairs, control } = parts.expect("the card comes up");
        (pairs, control)
    }

    /// The registers of the physical function.
    pub(super) fn window(&self) -> Window {
        Window::of(self.bridge.clone(), Side::Physical, BYTES)
    }

    pub(super) fn start_with_link(&self, pairs: u16) -> (Vec<Pair<Window>>, Control<Window>) {
        let parts = self.start(pairs);
        self.wait_for_link();
        parts
    }

    pub(super) fn wait_for_link(&self) {
        let status = || self.bridge.borrow_mut().read32(STATUS);
        wait_until(|| status() & STATUS_LINK_UP != 0);
    }

    /// The other end wants to negotiate again.
    pub(super) fn negotiate(&self) {
        let mut bridge = self.bridge.borrow_mut();
        bridge.write32(STATUS, 0);
        bridge.write32(MDIC, 1 << 26 | 1 << 21 | 1 << 9 | 1 << 12);
    }

    /// Whether a message was sent since this was last asked.
    pub(super) fn has_message(&self, message: u16) -> bool {
        let mut bridge = self.bridge.borrow_mut();
        let at = u64::from(MESSAGES_AT) + 4096 * u64::from(message);
        let has_come = bridge.qtest.read32(at) != 0;
        if has_come {
            bridge.qtest.write32(at, 0);
        }
        has_come
    }

    pub(super) fn put_on_wire(&self, frame: &[u8]) {
        let sent = self.wire.send_to(frame, self.folder.join("near"));
        assert_eq!(sent.expect("QEMU listens"), frame.len());
    }

    pub(super) fn take_from_wire(&self) -> Vec<u8> {
        let mut bytes = std::vec![0; 2048];
        let len = self.wire.recv(&mut bytes).expect("a frame");
        bytes.truncate(len);
        bytes
    }

    /// Waits for `count` frames.
    pub(super) fn receive(&self, pair: &mut Pair<Window>, count: usize) -> Vec<(Vec<u8>, Noted)> {
        let queue = usize::from(pair.vector());
        self.receive_while(queue, pair, |got| got.len() < count)
    }

    /// Waits for `count` frames in the queue of a pool.
    pub(super) fn receive_in_pool(
        &self,
        pool: usize,
        pair: &mut Pair<Window>,
        count: usize,
    ) -> Vec<(Vec<u8>, Noted)> {
        self.receive_while(pool, pair, |got| got.len() < count)
    }

    /// Waits until a frame like `last` has come.
    pub(super) fn receive_until(
        &self,
        pair: &mut Pair<Window>,
        last: &[u8],
    ) -> Vec<(Vec<u8>, Noted)> {
        let queue = usize::from(pair.vector());
        self.receive_while(queue, pair, |got| {
            got.last().is_none_or(|(bytes, _)| bytes != last)
        })
    }

    fn receive_while(
        &self,
        queue: usize,
        pair: &mut Pair<Window>,
        goes_on: impl Fn(&[(Vec<u8>, Noted)]) -> bool,
    ) -> Vec<(Vec<u8>, Noted)> {
        let mut got = Vec::new();
        wait_until(|| {
            self.bridge.borrow_mut().take_received(queue);
            got.extend(receive_noted(pair));
            !goes_on(&got)
        });
        got
    }
}

/// QEMU works beside us.
pub(super) fn wait_until(mut is_so: impl FnMut() -> bool) {
    let since = Instant::now();
    while !is_so() {
        assert!(since.elapsed() < PATIENCE, "QEMU does not get to it");
        thread::sleep(Duration::from_millis(1));
    }
}

impl Drop for Card {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// What firmware and kernel do for a card: base addresses, MSI-X with all messages routed.
fn find(qtest: &mut Qtest) {
    assert_eq!(qtest.config_read(PLACE, 0), 0x10c9_8086);
    qtest.config_write(PLACE, 0x10, REGISTERS_AT as u32);
    qtest.config_write(PLACE, 0x1c, TABLE_AT as u32);
    qtest.config_write(PLACE, 0x04, 0x6);
    route(qtest, PLACE, TABLE_AT, 0..MESSAGES);
}

/// Writes the table of messages that lies behind base address 3, which is at `table`.
pub(super) fn route(qtest: &mut Qtest, function: PciAddress, table: u64, messages: Range<u16>) {
    let mut capability = qtest.config_read(function, 0x34) & 0xff;
    while qtest.config_read(function, capability) & 0xff != 0x11 {
        capability = qtest.config_read(function, capability) >> 8 & 0xff;
        assert_ne!(capability, 0, "the function has MSI-X");
    }
    let place = qtest.config_read(function, capability + 4);
    assert_eq!(place & 7, 3, "the table is behind base address 3");
    let table = table + u64::from(place & !7);
    for (entry, message) in (0..).zip(messages) {
        let at = table + 16 * entry;
        qtest.write32(at, MESSAGES_AT + 4096 * u32::from(message));
        qtest.write32(at + 4, 0);
        qtest.write32(at + 8, 1);
        qtest.write32(at + 12, 0);
    }
    let control = qtest.config_read(function, capability);
    qtest.config_write(function, capability, control | 1 << 31);
}

/// The driver's side of the registers.
#[derive(Clone)]
pub(super) struct Window {
    bridge: Rc<RefCell<Bridge>>,
    side: Side,
    base: usize,
    bytes: usize,
    /// What others do whenever a register is read.
    meanwhile: Option<Rc<dyn Fn()>>,
}

impl Window {
    pub(super) fn of(bridge: Rc<RefCell<Bridge>>, side: Side, bytes: usize) -> Self {
        Self {
            bridge,
            side,
            base: 0,
            bytes,
            meanwhile: None,
        }
    }

    /// Others do something whenever a register is read.
    pub(super) fn beside(self, meanwhile: Rc<dyn Fn()>) -> Self {
        Self {
            meanwhile: Some(meanwhile),
            ..self
        }
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
        if let Some(meanwhile) = &self.meanwhile {
            meanwhile();
        }
        let at = self.base + offset;
        self.bridge.borrow_mut().read_of(self.side, at)
    }

    fn write32(&self, offset: usize, value: u32) {
        let at = self.base + offset;
        self.bridge.borrow_mut().write_of(self.side, at, value);
    }
}
