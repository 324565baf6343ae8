//! The physical function gives the controllers of virtual functions what they are to have.

use std::sync::Arc;

use base::lock::Lock;
use block::{ChannelBox, Control, Failure, Question};
use hal::sim::SimMemory;
use nvme::{Error, Namespace, Secondary, Wanted};

use crate::controller::{Controller, Faults, Model, Tenant};
use crate::{Cell, Driver};

const IDENTIFY: u8 = 0x06;
const ATTACHMENT: u8 = 0x15;
const VIRTUALIZATION: u8 = 0x1c;

fn model(functions: u16) -> Model {
    let tenant = |function| Tenant {
        function,
        ..Tenant::default()
    };
    Model {
        secondaries: (1..=functions).map(tenant).collect(),
        ..Model::default()
    }
}

fn open(device: &Controller, memory: &SimMemory) -> Driver {
    let wanted = Wanted {
        queues: 1,
        vectors: 1,
        may_be_empty: true,
    };
    nvme::Controller::open(device.access(), memory.clone(), device.clone(), wanted).unwrap()
}

fn driver(model: Model) -> (Controller, SimMemory, Driver) {
    let memory = SimMemory::new();
    let device = Controller::new(&memory, model);
    let driver = open(&device, &memory);
    (device, memory, driver)
}

#[expect(
    clippy::arc_with_non_send_sync,
    reason = "the bus is of one thread, as the tests are"
)]
fn started(
    driver: Driver,
) -> (
    Namespace<Cell<Driver>, SimMemory, Controller>,
    Vec<ChannelBox>,
) {
    Namespace::start(&Arc::new(Cell::new(driver)), 0).unwrap()
}

fn tenants(device: &Controller) -> Vec<Tenant> {
    let mut all = Vec::new();
    device.change(|model| all.clone_from(&model.secondaries));
    all
}

#[test]
fn what_is_flexible_is_divided_among_the_functions() {
    // Of eight queues and four interrupts one may have four and two.
    for (functions, queues, interrupts) in [(1, 4, 2), (2, 4, 2), (3, 2, 1), (4, 2, 1)] {
        let (device, _memory, mut driver) = driver(model(functions));
        driver.take_online(functions).unwrap();
        for tenant in tenants(&device) {
            let has = (tenant.queues, tenant.interrupts, tenant.is_online);
            assert_eq!(has, (queues, interrupts, true), "{functions} functions");
        }
    }
}

#[test]
fn a_function_without_two_queues_or_an_interrupt_stays_offline() {
    for flexible in [
        [(7, 4), (4, 2)],
        [(8, 1), (4, 2)],
        [(8, 4), (3, 2)],
        [(0, 0); 2],
    ] {
        let (device, _memory, mut driver) = driver(Model {
            flexible,
            ..model(4)
        });
        assert_eq!(driver.take_online(4), Err(Error::NoQueue));
        assert!(tenants(&device).iter().all(|tenant| !tenant.is_online));
    }
}

#[test]
fn a_namespace_goes_to_the_function_that_is_named_and_back() {
    let (device, _memory, mut driver) = driver(model(3));
    assert_eq!(
        driver.attach(2, 1),
        Err(Error::NoFunction),
        "nobody is online"
    );
    driver.take_online(2).unwrap();
    driver.attach(2, 2).unwrap();
    driver.attach(3, 1).unwrap();
    let has = |device: &Controller| {
        let all = tenants(device).into_iter();
        all.map(|tenant| tenant.namespaces).collect::<Vec<_>>()
    };
    assert_eq!(has(&device), [vec![3], vec![2], vec![]]);
    // The third function was not given to us.
    assert_eq!(driver.attach(4, 3), Err(Error::NoFunction));
    assert_eq!(driver.attach(4, 0), Err(Error::NoFunction));
    driver.detach(2, 2).unwrap();
    assert_eq!(has(&device), [vec![3], vec![], vec![]]);
}

#[test]
fn one_function_is_reset_and_its_neighbours_are_not() {
    let (device, _memory, mut driver) = driver(model(3));
    driver.take_online(3).unwrap();
    driver.attach(5, 2).unwrap();
    let before = tenants(&device);
    driver.reset_secondary(2).unwrap();
    let after = tenants(&device);
    assert_eq!((&after[0], &after[2]), (&before[0], &before[2]));
    let expected = Tenant {
        resets: 1,
        ..before[1].clone()
    };
    assert_eq!(after[1], expected, "and it has what it had");
    assert_eq!(driver.reset_secondary(4), Err(Error::NoFunction));
}

#[test]
fn a_reset_of_the_physical_function_gives_the_others_back_what_they_had() {
    let (device, _memory, mut driver) = driver(model(2));
    driver.take_online(2).unwrap();
    let before = tenants(&device);
    let (mut control, _channels) = started(driver);
    device.misbehave(Faults {
        ignores: Some(IDENTIFY),
        ..Faults::default()
    });
    control.refresh();
    assert!(tenants(&device).iter().all(|tenant| !tenant.is_online));
    device.misbehave(Faults::default());
    assert!(control.start().is_ok());
    for (tenant, before) in tenants(&device).iter().zip(&before) {
        let expected = Tenant {
            resets: 1,
            ..before.clone()
        };
        assert_eq!(*tenant, expected);
    }
}

#[test]
fn a_command_that_is_refused_harms_nobody_and_one_that_never_ends_resets() {
    for opcode in [ATTACHMENT, VIRTUALIZATION] {
        let (device, _memory, mut driver) = driver(model(1));
        driver.take_online(1).unwrap();
        let act = |driver: &mut Driver| match opcode {
            ATTACHMENT => driver.attach(2, 1),
            _ => driver.reset_secondary(1),
        };
        device.misbehave(Faults {
            refuses: Some(opcode),
            ..Faults::default()
        });
        assert!(matches!(act(&mut driver), Err(Error::Refused(_))));
        assert_eq!(device.resets(), 0);
        device.misbehave(Faults {
            ignores: Some(opcode),
            ..Faults::default()
        });
        assert_eq!(act(&mut driver), Err(Error::TimedOut));
        assert_eq!(device.resets(), 1);
        assert_eq!(act(&mut driver), Err(Error::Absent));
    }
}

#[test]
fn a_program_with_rights_rules_functions_by_admin_commands_and_nothing_else() {
    let (device, _memory, mut driver) = driver(model(2));
    driver.take_online(2).unwrap();
    let (mut control, _channels) = started(driver);
    let mut ask = |opcode, namespace, words: [u32; 2], list: [u16; 3]| {
        let question = Question {
            opcode,
            namespace,
            words: [words[0], words[1], 0, 0, 0, 0],
        };
        let mut data = vec![0; 4096];
        for (place, word) in list.iter().enumerate() {
            data[2 * place..2 * place + 2].copy_from_slice(&word.to_le_bytes());
        }
        let reply = control.ask(&question, &mut data);
        reply.map(|reply| reply.status)
    };
    let refused = Err(Failure::Unsupported);
    assert_eq!(ask(ATTACHMENT, 2, [0, 0], [1, 101, 0]), Ok(0));
    assert_eq!(tenants(&device)[0].namespaces, [2]);
    assert_eq!(ask(ATTACHMENT, 2, [1, 0], [1, 101, 0]), Ok(0));
    assert_eq!(tenants(&device)[0].namespaces, []);
    // The kernel's own disk, everything, two at once, nobody, a controller that is not there, something else.
    for namespace in [1, u32::MAX] {
        assert_eq!(ask(ATTACHMENT, namespace, [0, 0], [1, 101, 0]), refused);
    }
    for list in [[2, 101, 102], [0, 101, 0], [1, 103, 0], [1, 0, 0]] {
        assert_eq!(ask(ATTACHMENT, 2, [0, 0], list), refused);
    }
    assert_eq!(ask(ATTACHMENT, 2, [2, 0], [1, 101, 0]), refused);
    let whose = 101 << 16;
    assert_eq!(
        ask(VIRTUALIZATION, 0, [whose | 8, 3], [0; 3]),
        Ok(0x120),
        "it is online"
    );
    for (words, has) in [
        ([whose | 7, 0], (0, 0, false)),
        ([whose | 8, 3], (3, 0, false)),
        ([whose | 0x108, 1], (3, 1, false)),
        ([whose | 9, 0], (3, 1, true)),
    ] {
        assert_eq!(ask(VIRTUALIZATION, 0, words, [0; 3]), Ok(0));
        let tenant = &tenants(&device)[0];
        assert_eq!((tenant.queues, tenant.interrupts, tenant.is_online), has);
    }
    // What the physical function itself has, and a controller that is not there.
    assert_eq!(ask(VIRTUALIZATION, 0, [1, 1], [0; 3]), refused);
    assert_eq!(ask(VIRTUALIZATION, 0, [103 << 16 | 7, 0], [0; 3]), refused);
    assert_eq!(device.resets(), 0);
}

#[test]
fn a_list_that_makes_no_sense_names_nobody_else() {
    let odd = Tenant {
        function: 7,
        ..Tenant::default()
    };
    for said in [0, 1, 2, 200, 255] {
        let (_device, _memory, mut driver) = driver(Model {
            secondaries: vec![odd.clone(), odd.clone()],
            secondaries_said: Some(said),
            ..Model::default()
        });
        assert_eq!(driver.secondaries(3), Ok(vec![]), "{said}");
        let known = Secondary {
            function: 7,
            controller: 107,
            queues: 0,
            interrupts: 0,
            is_online: false,
        };
        let count = usize::from(said).min(2);
        assert_eq!(driver.secondaries(7), Ok(vec![known; count]), "{said}");
    }
}

#[test]
fn a_controller_that_has_no_namespace_may_still_rule_others() {
    let (device, _memory, mut driver) = driver(Model {
        namespaces: Vec::new(),
        ..model(1)
    });
    assert_eq!(driver.namespaces(), 0);
    driver.take_online(1).unwrap();
    assert!(tenants(&device)[0].is_online);
}
