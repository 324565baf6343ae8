//! Taking a unit over.

use super::model::{CACHING_MODE, LARGE_PAGES, LEVELS_4, Making, Model, WRITE_BUFFER_FLUSH};
use super::{Rig, function};
use crate::{Capabilities, Error, MissingFeature, Unit};
use hal::Registers;

fn capable_of(capabilities: u64) -> Model {
    Model::new(Making {
        capabilities,
        faults: 1,
    })
}

#[test]
fn capabilities_are_read() {
    let read = |bits| Capabilities::read(&capable_of(bits).registers()).expect("it works");
    let common = read(0);
    assert_eq!(common.version, (1, 0));
    assert_eq!((common.levels, common.domains), (3, 1 << 16));
    assert_eq!(common.faults, (0x220, 1));
    assert_eq!(common.drains, (true, true));
    assert!(!common.has_large_pages && !common.caches_absence);
    assert_eq!(read(LEVELS_4).levels, 4);
    assert!(read(LARGE_PAGES).has_large_pages);
    assert!(read(CACHING_MODE).caches_absence);
}

#[test]
fn what_a_unit_must_have_is_asked_for() {
    let open = |model: &Model| Unit::open(model.registers(), model.memory()).err();
    assert_eq!(open(&Model::common()), None);
    let old = capable_of(WRITE_BUFFER_FLUSH);
    assert_eq!(
        open(&old),
        Some(Error::Lacks(MissingFeature::CoherentWrites))
    );
    let model = Model::common();
    model.without_queue();
    assert_eq!(open(&model), Some(Error::Lacks(MissingFeature::Queue)));
    let faults = Model::new(Making {
        capabilities: 0x3ff << 24,
        faults: 256,
    });
    assert_eq!(
        open(&faults),
        Some(Error::Lacks(MissingFeature::FaultRegisters))
    );
    let short = Model::common().registers().window(0, 4095);
    let short = short.expect("inside");
    assert_eq!(Capabilities::read(&short), Err(Error::NotVtd));
}

#[test]
fn what_a_firmware_left_on_is_turned_off_before_the_tables_change() {
    let model = Model::common();
    model.left_on();
    let unit = Unit::open(model.registers(), model.memory()).expect("it works");
    assert_eq!(
        model.status() & (1 << 31 | 1 << 25),
        0,
        "nothing is translated"
    );
    assert_ne!(model.status() & 1 << 26, 0, "the queue runs");
    drop(unit);
}

#[test]
fn a_unit_that_does_not_answer_is_an_error_and_no_endless_wait() {
    let model = Model::common();
    let registers = model.registers();
    registers.deaf_switch().set(true);
    let error = Unit::open(registers, model.memory()).err();
    assert_eq!(error, Some(Error::CommandStuck { bit: 1 << 30 }));
}

#[test]
fn pages_that_the_unit_may_still_know_are_not_reported_as_taken_away() {
    let model = Model::common();
    let registers = model.registers();
    let deaf = registers.deaf_switch();
    let unit = Unit::open(registers, model.memory()).expect("it works");
    let mut rig = Rig { model, unit };
    rig.unit.translate().expect("it translates");
    let domain = rig.attach(function(0, 2, 0));
    let pages = crate::Pages::identical(0x1000, 0x1000);
    rig.unit.map(domain, pages).expect("mapped");
    deaf.set(true);
    let stuck = Error::InvalidationStuck { status: 0 };
    assert_eq!(rig.unit.unmap(domain, 0x1000, 0x1000), Err(stuck));
}
