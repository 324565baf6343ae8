use std::println;

use super::Counter;
use super::model::{ALL, Cpu, Processor, REFERENCE};

const PERIOD: u64 = 3_009_027;

fn started(silicon: Processor, period: u64) -> Cpu {
    let mut cpu = Cpu::new(silicon, period);
    cpu.is_wanted = true;
    cpu.nmi();
    cpu
}

#[test]
fn a_processor_without_counters_offers_none() {
    assert!(Counter::offered(|_| [0; 4], PERIOD).is_none(), "emulated");
    let first_version = [0x0728_0201, 0, 0, 0];
    assert!(Counter::offered(|leaf| if leaf == 0xa { first_version } else { [0; 4] }, 1).is_none());
}

#[test]
fn a_counter_that_is_not_there_or_too_narrow_is_not_taken() {
    let no_event = [0x0728_0402, 1, 0, 0];
    let no_counter = [0x0728_0002, 0, 0, 0];
    let narrow = [0x0710_0402, 0, 0, 0x0203];
    let absurd = [0x07ff_0402, 0, 0, 0x1fe3];
    for leaf in [no_event, no_counter, narrow, absurd] {
        let offered = Counter::offered(|number| if number == 0xa { leaf } else { [0; 4] }, 1);
        assert!(offered.is_none(), "{leaf:x?}");
    }
}

#[test]
fn fixed_counters_may_be_named_one_by_one() {
    let by_mask = Processor {
        monitoring: [0x0830_0805, 0, 0b100, 0x0600],
        ..REFERENCE
    };
    let mut cpu = started(by_mask, PERIOD);
    cpu.run(PERIOD);
    assert_eq!(cpu.samples, 1);
}

#[test]
fn every_processor_samples_once_in_a_period_however_its_work_is_cut() {
    let seed = std::env::var("SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    let seed: u64 = seed.unwrap_or(0xa11);
    println!("SEED={seed}");
    for silicon in ALL {
        let (mut state, mut total) = (seed, 0);
        let mut cpu = started(silicon, PERIOD);
        for _ in 0..1000 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let cycles = (state >> 33) % (3 * PERIOD);
            cpu.run(cycles);
            total += cycles;
            assert_eq!(cpu.samples, total / PERIOD, "{}, SEED={seed}", silicon.name);
        }
    }
}

#[test]
fn an_nmi_of_somebody_else_is_no_sample_and_shifts_none() {
    for silicon in ALL {
        let mut cpu = started(silicon, PERIOD);
        for _ in 0..10 {
            cpu.run(PERIOD / 4);
            cpu.nmi();
        }
        assert_eq!(cpu.samples, 2, "{}", silicon.name);
    }
}

#[test]
fn what_firmware_left_running_ends_and_is_no_sample() {
    for silicon in ALL {
        let mut cpu = started(silicon, PERIOD);
        assert!(cpu.counts_alone(), "{}", silicon.name);
        cpu.nmi();
        cpu.run(PERIOD - 1);
        assert_eq!(cpu.samples, 0, "{}", silicon.name);
    }
}

#[test]
fn nobody_touches_a_counter_that_nobody_wants() {
    for silicon in ALL {
        let mut cpu = Cpu::new(silicon, PERIOD);
        cpu.nmi();
        cpu.run(10 * PERIOD);
        assert_eq!(cpu.samples, 0, "{}", silicon.name);
    }
}

#[test]
fn a_counter_that_was_stopped_is_quiet_until_it_is_started_again() {
    for silicon in ALL {
        let mut cpu = started(silicon, PERIOD);
        cpu.run(PERIOD / 2);
        cpu.is_wanted = false;
        // It comes to its end before the stop reaches it: the sample is not wanted any more.
        cpu.run(10 * PERIOD);
        cpu.nmi();
        cpu.run(10 * PERIOD);
        assert_eq!(cpu.samples, 0, "{}", silicon.name);
        cpu.is_wanted = true;
        cpu.nmi();
        cpu.run(2 * PERIOD);
        assert_eq!(cpu.samples, 2, "{}", silicon.name);
    }
}

#[test]
fn periods_that_no_counter_holds_are_brought_into_bounds() {
    for silicon in ALL {
        let mut cpu = started(silicon, u64::MAX);
        cpu.run(i32::MAX as u64);
        assert_eq!(cpu.samples, 1, "{}", silicon.name);
        let mut cpu = started(silicon, 0);
        cpu.run(5);
        assert_eq!(cpu.samples, 5, "{}", silicon.name);
    }
}
