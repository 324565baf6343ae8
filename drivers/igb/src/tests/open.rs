//! Finding the card on the bus.

extern crate std;

use core::cell::Cell;

use hal::Mmio;
use hal::pci::PciFunction;

use super::rig::Rig;
use crate::{Error, is_for, open, registers};

/// A function with this identification and these registers.
struct Function<'a> {
    id: u32,
    rig: &'a Rig,
    register_bytes: usize,
    command: Cell<u32>,
}

impl<'a> Function<'a> {
    fn new(rig: &'a Rig, id: u32, register_bytes: usize) -> Self {
        Self {
            id,
            rig,
            register_bytes,
            command: Cell::new(0),
        }
    }

    fn open(&self) -> Option<Error> {
        open(self, &self.rig.memory, self.rig.pool, 1).err()
    }
}

impl PciFunction for Function<'_> {
    fn config_read(&self, offset: u16) -> u32 {
        match offset {
            0 => self.id,
            4 => self.command.get(),
            _ => 0,
        }
    }

    fn config_write(&self, offset: u16, value: u32) {
        assert_eq!(offset, 4);
        self.command.set(value);
    }

    fn bar(&self, index: u8) -> Option<Mmio> {
        assert_eq!(index, 0);
        (self.register_bytes > 0).then(|| self.rig.memory.registers(self.register_bytes / 8))
    }
}

const IGB: u32 = 0x10c9_8086;

#[test]
fn only_an_82576_is_taken_and_no_virtual_function_of_it() {
    let rig = Rig::new(10);
    assert!(is_for(&Function::new(&rig, IGB, 0)));
    for id in [0x100e_8086, 0x10ca_8086, 0x10c9_1af4] {
        let other = Function::new(&rig, id, registers::BYTES);
        assert_eq!(other.open(), Some(Error::NotIgb));
        assert_eq!(other.command.get(), 0, "it is left alone");
    }
}

#[test]
fn a_card_without_its_registers_is_refused() {
    let rig = Rig::new(10);
    let absent = Function::new(&rig, IGB, 0);
    assert_eq!(absent.open(), Some(Error::RegistersOutside));
    let small = Function::new(&rig, IGB, registers::BYTES / 2);
    assert_eq!(small.open(), Some(Error::RegistersOutside));
}

#[test]
fn a_card_is_let_onto_the_bus_before_it_is_reset() {
    let rig = Rig::new(10);
    let function = Function::new(&rig, IGB, registers::BYTES);
    let error = Some(Error::ResetStuck);
    assert_eq!(
        function.open(),
        error,
        "registers that only remember do not reset"
    );
    assert_eq!(
        function.command.get() & 0b110,
        0b110,
        "memory and bus master"
    );
}
