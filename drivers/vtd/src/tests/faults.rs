//! What was refused, as the driver tells it.

use hal::pci::MsiMessage;
use std::vec::Vec;

use super::model::{Making, Model};
use super::{Rig, function};
use crate::{Fault, Pages, Reason, Taken};

fn rig(faults: usize) -> Rig {
    Rig::new(Model::new(Making {
        capabilities: 0,
        faults,
    }))
}

fn take(rig: &mut Rig) -> (Vec<Fault>, Taken) {
    let mut all = Vec::new();
    let taken = rig.unit.take_faults(&mut |fault| all.push(fault));
    assert_eq!(taken.faults, all.len());
    (all, taken)
}

#[test]
fn a_fault_names_the_device_the_address_and_the_reason() {
    let mut rig = rig(4);
    let domain = rig.attach(function(0x7f, 31, 7));
    rig.unit
        .map(domain, Pages::identical(0x7000, 0x1000))
        .expect("mapped");
    rig.model
        .request(function(0x7f, 31, 7), 0x12_3456_7abc, true);
    rig.model.request(function(0x7f, 31, 7), 0x8fff, false);
    rig.model.request(function(0x7f, 31, 6), 0x7000, false);
    rig.model.request(function(0x7f, 31, 7), 1 << 39, true);
    let (faults, taken) = take(&mut rig);
    let wanted = [
        (7, 0x12_3456_7000, true, Reason::NotMapped),
        (7, 0x8000, false, Reason::NotMapped),
        (6, 0x7000, false, Reason::NoDomain),
        (7, 1 << 39, true, Reason::BeyondTable),
    ];
    let wanted = wanted.map(|(number, address, is_write, reason)| Fault {
        source: function(0x7f, 31, number),
        address,
        is_write,
        reason,
    });
    assert_eq!(faults, wanted);
    assert!(!taken.lost);
}

#[test]
fn each_fault_is_told_once_and_in_order_round_the_registers() {
    let mut rig = rig(3);
    let mut next = 0u64;
    for round in [1, 2, 3, 1, 3, 2] {
        for step in 0..round {
            rig.model
                .request(function(0, 2, 0), (next + step) << 12, true);
        }
        let (faults, taken) = take(&mut rig);
        let addresses: Vec<_> = faults.iter().map(|fault| fault.address >> 12).collect();
        assert_eq!(addresses, (next..next + round).collect::<Vec<_>>());
        assert!(!taken.lost);
        next += round;
    }
    assert_eq!(take(&mut rig).1, Taken::default());
}

#[test]
fn what_the_registers_could_not_hold_is_told_as_lost() {
    let mut rig = rig(2);
    for page in 0..5 {
        rig.model.request(function(0, 2, 0), page << 12, true);
    }
    let (faults, taken) = take(&mut rig);
    assert_eq!(faults.len(), 2);
    assert!(taken.lost);
    assert_eq!(take(&mut rig).1, Taken::default(), "once");
    rig.model.request(function(0, 2, 0), 9 << 12, true);
    assert_eq!(take(&mut rig).0[0].address, 9 << 12, "it goes on");
}

#[test]
fn what_is_refused_while_a_fault_is_told_is_told_the_next_time() {
    let mut rig = rig(1);
    let source = function(0, 2, 0);
    rig.attach(source);
    rig.model.request(source, 0x1000, true);
    let model = &rig.model;
    let taken = rig
        .unit
        .take_faults(&mut |_| _ = model.request(source, 0x2000, true));
    assert!(taken.faults == 1 && !taken.lost);
    let (faults, taken) = take(&mut rig);
    assert_eq!(faults.first().map(|fault| fault.address), Some(0x2000));
    assert!(!taken.lost);
}

#[test]
fn faults_interrupt_while_they_are_unmasked_once_until_they_are_taken() {
    let mut rig = rig(2);
    rig.unit.lead_faults(MsiMessage {
        address: 0xfee0_1000,
        data: 0x41,
    });
    rig.model.request(function(0, 2, 0), 0, true);
    assert_eq!(rig.model.interrupts(), [], "masked");
    take(&mut rig);
    rig.unit.mask_faults(false);
    rig.model.request(function(0, 2, 0), 0, true);
    rig.model.request(function(0, 2, 0), 0, true);
    assert_eq!(rig.model.interrupts(), [(0xfee0_1000, 0x41)]);
    take(&mut rig);
    rig.model.request(function(0, 2, 0), 0, true);
    assert_eq!(rig.model.interrupts().len(), 2);
}
