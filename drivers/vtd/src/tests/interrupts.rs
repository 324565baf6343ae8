//! Which interrupts a device raises.

use std::vec::Vec;

use super::model::Model;
use super::{Rig, function};
use crate::{Error, Fault, Interrupt, MissingFeature, Reason, message_of};

const VECTORS_LEFT_ON: u32 = 1 << 23;

fn interrupt(vector: u8, source: u16) -> Interrupt {
    Interrupt {
        vector,
        is_nmi: false,
        is_level: false,
        apic_id: 3,
        source,
    }
}

fn rig() -> Rig {
    let mut rig = Rig::new(Model::common());
    rig.unit.remap_interrupts().expect("it can");
    rig
}

#[test]
fn a_function_raises_the_interrupts_that_it_was_given_and_no_others() {
    let mut rig = rig();
    let (own, other) = (function(0, 5, 0), function(0, 5, 1));
    rig.unit
        .lead(0x41, interrupt(0x41, own.requester_id()))
        .expect("led");
    let message = message_of(0x41);
    let raise = |from, address| rig.model.interrupt(from, address, 0);
    assert_eq!(raise(own, message.address), Some((0x41, 3)));
    assert_eq!(raise(other, message.address), None, "it is another's");
    assert_eq!(raise(own, message_of(0x42).address), None, "no such entry");
    assert_eq!(raise(own, 0xfee0_3000), None, "it names a vector");
    let mut faults = Vec::new();
    rig.unit.take_faults(&mut |fault: Fault| faults.push(fault));
    assert_eq!(faults.len(), 1, "as many as the unit records");
    let refused = (faults[0].source, faults[0].reason);
    assert_eq!(refused, (other, Reason::Interrupt));
}

#[test]
fn an_entry_that_changed_is_forgotten_when_the_call_returns() {
    let mut rig = rig();
    let (first, second) = (function(0, 5, 0), function(0, 6, 0));
    for round in 0..20_u8 {
        let [own, other] = match round % 2 {
            0 => [first, second],
            _ => [second, first],
        };
        let led = interrupt(0x30 + round, own.requester_id());
        rig.unit.lead(0x77, led).expect("led");
        let address = message_of(0x77).address;
        assert_eq!(
            rig.model.interrupt(own, address, 0),
            Some((0x30 + round, 3))
        );
        assert_eq!(rig.model.interrupt(other, address, 0), None);
    }
}

#[test]
fn every_entry_is_named_by_its_own_message() {
    let mut rig = rig();
    let source = function(0, 5, 0);
    for index in 0..=u8::MAX {
        let led = interrupt(index, source.requester_id());
        rig.unit.lead(index, led).expect("led");
    }
    for index in 0..=u8::MAX {
        let raised = rig.model.interrupt(source, message_of(index).address, 0);
        assert_eq!(raised, Some((index, 3)));
    }
}

#[test]
fn a_unit_without_a_table_of_interrupts_says_so() {
    let model = Model::common();
    model.without_interrupts();
    let mut rig = Rig::new(model);
    let lacks = Err(Error::Lacks(MissingFeature::Interrupts));
    assert_eq!(rig.unit.remap_interrupts(), lacks);
    assert_eq!(rig.unit.lead(0x41, interrupt(0x41, 0)), lacks);
}

#[test]
fn messages_that_name_vectors_are_blocked_whatever_a_firmware_left() {
    let model = Model::common();
    model.left_on();
    let mut rig = Rig::new(model);
    rig.unit.remap_interrupts().expect("it can");
    assert_eq!(rig.model.status() & VECTORS_LEFT_ON, 0);
}

#[test]
fn an_interrupt_goes_to_the_cpu_that_it_was_last_led_to() {
    let mut rig = rig();
    let own = function(0, 5, 0);
    let address = message_of(0x41).address;
    for apic_id in [3, 7, 0, 255, 3] {
        let led = Interrupt {
            apic_id,
            ..interrupt(0x41, own.requester_id())
        };
        rig.unit.lead(0x41, led).expect("led");
        let raised = rig.model.interrupt(own, address, 0);
        assert_eq!(raised, Some((0x41, apic_id)));
    }
}
