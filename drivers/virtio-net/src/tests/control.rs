//! Several pairs, and the commands that they need.

extern crate std;

use super::Bench;
use crate::commands::{Command, CommandError, Commands};
use crate::control::hash_config;
use crate::open;
use crate::table::{STATIONS_MAX, Table};
use base::DeviceAddr;
use hal::{FramePort, NicControl, NicError, SpreadRule};
use std::vec;
use std::vec::Vec;
use virtio::Error;

/// Every feature that matters here; the simulated registers show it as both halves, so
/// bit 0 is also `VERSION_1`, and bit 28 `RSS`.
const FEATURES: u32 = 1 | 1 << 5 | 1 << 17 | 1 << 18 | 1 << 22 | 1 << 28;
/// The same for a device that lets everything in.
const UNFILTERED: u32 = FEATURES & !(1 << 18);
/// Registers.
const STATUS: usize = 0x70;
const QUEUE_SEL: usize = 0x30;
const DRIVER_OK: u32 = 4;
const NEEDS_RESET: u32 = 64;

const RULE: SpreadRule<'_> = SpreadRule {
    key: &[0x6d; 40],
    table: &[0; 128],
    ipv6: true,
    tcp_ports: true,
    udp_ports: false,
};
const COMMAND: Command = Command {
    class: 4,
    number: 7,
};

fn bench(device_pairs: u8) -> Bench {
    let bench = Bench::new(8, 64);
    bench.registers.write32(0x10, FEATURES);
    bench.registers.write8(0x108, device_pairs);
    bench.registers.write8(0x111, 40);
    bench.registers.write8(0x112, 128);
    bench.registers.write8(0x114, 0x3f);
    bench
}

/// What a device that answers so makes of a command.
fn outcome_of(answer: u8) -> (Vec<u8>, Option<Result<(), CommandError>>) {
    let bench = bench(2);
    let mut commands = Commands::new(&bench.transport(), 4, &bench.memory, bench.pool).unwrap();
    let mut device = bench.device();
    commands.give(COMMAND, &[&[1], &[2, 3]]).unwrap();
    assert_eq!(commands.outcome(), None, "the device is at it");
    device.fetch();
    let command = device.pending.pop_front().unwrap();
    let [request, room] = &command.parts[..] else {
        panic!("a command has two parts");
    };
    let mut bytes = vec![0; request.len as usize];
    bench
        .memory
        .read(DeviceAddr(request.addr), &mut bytes)
        .unwrap();
    bench
        .memory
        .write(DeviceAddr(room.addr), &[answer])
        .unwrap();
    device.complete(u32::from(command.head), 1);
    (bytes, commands.outcome())
}

#[test]
fn a_command_is_its_class_its_number_and_its_data_and_the_answer_says_what_became_of_it() {
    assert_eq!(outcome_of(0), (vec![4, 7, 1, 2, 3], Some(Ok(()))));
    assert_eq!(outcome_of(1).1, Some(Err(CommandError::Refused)));
}

#[test]
fn data_that_does_not_fit_is_not_given() {
    let bench = bench(2);
    let mut commands = Commands::new(&bench.transport(), 4, &bench.memory, bench.pool).unwrap();
    let outcome = commands.give(COMMAND, &[&[0; 4096]]);
    assert_eq!(outcome, Err(CommandError::NoMemory));
    assert_eq!(commands.give(COMMAND, &[&[0; 300]]), Ok(()));
}

#[test]
fn the_hash_is_described_in_the_standards_layout() {
    let mut wanted = vec![0b01_1011, 0, 0, 0, 127, 0, 0, 0];
    wanted.extend([0; 256]);
    wanted.extend([2, 0, 40]);
    wanted.extend([0x6d; 40]);
    assert_eq!(hash_config(&RULE, 2), wanted);
}

#[test]
fn the_table_is_in_the_standards_layout_and_full_at_its_limit() {
    let mut table = Table::default();
    assert_eq!(table.to_bytes(), [0; 8]);
    table.groups.push([1, 0, 0x5e, 0, 0, 1]);
    let one = table.with([2, 0, 0, 0, 0, 7]).unwrap();
    let wanted = [
        1, 0, 0, 0, 2, 0, 0, 0, 0, 7, 1, 0, 0, 0, 1, 0, 0x5e, 0, 0, 1,
    ];
    assert_eq!(one.to_bytes(), wanted);
    assert_eq!(one.without([2, 0, 0, 0, 0, 7]), table);
    assert_eq!(one.without([2, 0, 0, 0, 0, 8]), one, "it was not there");
    for last in 0..STATIONS_MAX as u8 {
        table = table.with([2, 0, 0, 0, 1, last]).unwrap();
    }
    assert_eq!(table.with([2, 0, 0, 0, 2, 0]), None);
}

#[test]
fn a_device_that_lets_everything_in_has_no_filter_for_an_address_and_that_is_said() {
    let bench = bench(4);
    bench.registers.write32(0x10, UNFILTERED);
    let mut parts = open(bench.transport(), &bench.memory, bench.pool, 1).unwrap();
    let outcome = parts.control.add_address(0, [2, 0, 0, 0, 0, 7]);
    assert_eq!(outcome, Err(NicError::FiltersFull));
    let outcome = parts.control.add_address(1, [2, 0, 0, 0, 0, 7]);
    assert_eq!(outcome, Err(NicError::Unsupported));
}

#[test]
fn a_device_that_does_not_answer_for_the_pairs_that_it_offered_is_not_driven() {
    let bench = bench(4);
    let outcome = open(bench.transport(), &bench.memory, bench.pool, 2);
    assert_eq!(outcome.err(), Some(Error::CommandRefused));
    assert_eq!(bench.registers.read32(STATUS), 0, "it is reset");
    let behind_all_pairs = 8;
    assert_eq!(bench.registers.read32(QUEUE_SEL), behind_all_pairs);
}

/// Which queue was the last to be added for one pair, by what the device offers.
fn last_queue_of_one_pair(features: u32) -> u32 {
    let bench = bench(4);
    bench.registers.write32(0x10, features);
    let mut parts = open(bench.transport(), &bench.memory, bench.pool, 1).unwrap();
    assert_eq!(parts.pairs.len(), 1);
    let last = bench.registers.read32(QUEUE_SEL);
    let outcome = parts.control.spread(0, &RULE);
    assert_eq!(outcome, Err(NicError::Unsupported));
    last
}

#[test]
fn one_pair_has_a_control_queue_right_behind_it_for_the_filters_of_a_device_that_has_some() {
    assert_eq!(last_queue_of_one_pair(FEATURES), 2);
    assert_eq!(last_queue_of_one_pair(UNFILTERED), 1, "of no use");
}

#[test]
fn a_rule_that_names_a_pair_that_is_not_used_does_not_reach_the_device() {
    let bench = bench(1);
    let mut parts = open(bench.transport(), &bench.memory, bench.pool, 8).unwrap();
    assert_eq!(parts.pairs.len(), 1, "all that it has");
    let rule = SpreadRule {
        table: &[1; 128],
        ..RULE
    };
    let outcome = parts.control.spread(0, &rule);
    assert_eq!(outcome, Err(NicError::Unsupported));
    assert_eq!(bench.device().fetch(), 0);
}

#[test]
fn a_device_that_failed_keeps_its_command_and_is_given_no_other() {
    let bench = bench(1);
    let mut parts = open(bench.transport(), &bench.memory, bench.pool, 2).unwrap();
    bench.registers.write32(STATUS, DRIVER_OK | NEEDS_RESET);
    let free = bench.pool.free();
    assert_eq!(parts.control.spread(0, &RULE), Err(NicError::Failed));
    assert_eq!(bench.pool.free(), free - 2);
    assert_eq!(parts.control.spread(0, &RULE), Err(NicError::Failed));
    assert_eq!(bench.pool.free(), free - 2, "nothing more is given");
    drop(parts);
    assert_eq!(bench.registers.read32(STATUS), 0);
}

#[test]
fn parts_that_go_first_leave_their_memory_and_the_last_one_stops_the_device() {
    let bench = bench(1);
    let parts = open(bench.transport(), &bench.memory, bench.pool, 2).unwrap();
    let (pairs, control) = (parts.pairs, parts.control);
    let free = bench.pool.free();
    let mtu = pairs[0].mtu();
    drop(pairs);
    assert_eq!(
        bench.pool.free(),
        free,
        "the device still fills the pair's buffers"
    );
    assert_ne!(bench.registers.read32(STATUS), 0);
    assert_eq!(control.shape().mtu, mtu);
    drop(control);
    assert_eq!(bench.registers.read32(STATUS), 0);
}
