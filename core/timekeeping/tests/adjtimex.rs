//! The rules of adjtimex(2).

use timekeeping::{Ntp, NtpError, Request, Speed, modes, status};

const PLL: u32 = status::PLL;

fn asking(modes: u32) -> Request {
    Request {
        modes,
        ..Request::default()
    }
}

fn done(ntp: &mut Ntp, request: Request) -> Request {
    ntp.adjust(&request, true, 0).expect("a good request").state
}

#[test]
fn nobody_without_the_right_changes_anything_but_all_may_look() {
    let mut ntp = Ntp::default();
    assert!(ntp.adjust(&asking(0), false, 0).is_ok());
    let look = asking(modes::OFFSET_SINGLESHOT | modes::READONLY);
    assert!(ntp.adjust(&look, false, 0).is_ok());
    for bit in [
        modes::OFFSET,
        modes::TICK,
        modes::STATUS,
        modes::OFFSET_SINGLESHOT,
    ] {
        let refused = ntp.adjust(&asking(bit), false, 0);
        assert_eq!(refused, Err(NtpError::NotPermitted), "{bit:#x}");
    }
}

#[test]
fn values_out_of_range_are_refused_or_clamped_as_the_manual_says() {
    let mut ntp = Ntp::default();
    let tick = |tick| Request {
        tick,
        ..asking(modes::TICK)
    };
    for bad in [0, 8_999, 11_001] {
        assert_eq!(ntp.adjust(&tick(bad), true, 0), Err(NtpError::Invalid));
    }
    assert_eq!(done(&mut ntp, tick(9_000)).tick, 9_000);
    let bad = Request {
        time: [0, 1_000_000],
        ..asking(modes::SETOFFSET)
    };
    assert_eq!(ntp.adjust(&bad, true, 0), Err(NtpError::Invalid));
    assert_eq!(
        ntp.adjust(&asking(modes::ADJTIME), true, 0),
        Err(NtpError::Invalid)
    );
    let fast = Request {
        frequency: 600 << 16,
        ..asking(modes::FREQUENCY)
    };
    assert_eq!(done(&mut ntp, fast).frequency, 500 << 16);
}

#[test]
fn the_clock_is_in_error_until_a_program_says_otherwise_and_again_when_that_is_old() {
    let mut ntp = Ntp::default();
    assert_eq!(
        ntp.adjust(&asking(0), false, 0).map(|done| done.verdict),
        Ok(5)
    );
    let synchronised = Request {
        max_error: 1000,
        ..asking(modes::STATUS | modes::MAXERROR)
    };
    assert_eq!(
        ntp.adjust(&synchronised, true, 0).map(|done| done.verdict),
        Ok(0)
    );
    let later = ntp
        .adjust(&asking(0), false, 10)
        .expect("looking is allowed");
    assert_eq!((later.verdict, later.state.max_error), (0, 6000));
    let too_late = ntp
        .adjust(&asking(0), false, 100_000)
        .expect("looking is allowed");
    assert_eq!(too_late.verdict, 5);
}

#[test]
fn adjtime_works_off_half_a_millisecond_a_second() {
    let mut ntp = Ntp::default();
    done(
        &mut ntp,
        Request {
            offset: -1200,
            ..asking(modes::OFFSET_SINGLESHOT)
        },
    );
    let speeds: Vec<Speed> = (0..4).map(|second| ntp.second(second).0).collect();
    assert_eq!(speeds, [-500, -500, -200, 0].map(Speed::from_ppm));
    assert!(!ntp.is_busy());
}

#[test]
fn the_loop_works_off_an_offset_and_needs_no_wake_up_after_that() {
    let mut ntp = Ntp::default();
    done(
        &mut ntp,
        Request {
            status: PLL,
            ..asking(modes::STATUS)
        },
    );
    done(
        &mut ntp,
        Request {
            offset: 40_000,
            ..asking(modes::OFFSET)
        },
    );
    let mut gained = 0;
    let mut seconds = 0;
    while ntp.is_busy() {
        gained += ntp.second(seconds).0.parts_per_trillion() / 1000;
        seconds += 1;
        assert!(seconds < 1000, "an offset ends");
    }
    assert!((gained - 40_000_000).abs() < 1000, "{gained} ns of 40 ms");
}

#[test]
fn offsets_are_ignored_without_the_loop_and_teach_the_frequency_with_it() {
    let mut ntp = Ntp::default();
    let offset = Request {
        offset: 10_000,
        ..asking(modes::OFFSET)
    };
    assert_eq!(done(&mut ntp, offset).offset, 0);
    done(
        &mut ntp,
        Request {
            status: PLL,
            ..asking(modes::STATUS)
        },
    );
    let learned = ntp.adjust(&offset, true, 64).expect("a good request").state;
    assert!(learned.frequency > 0 && learned.offset == 10_000);
}

#[test]
fn a_leap_second_is_inserted_at_the_end_of_the_day_and_only_once() {
    let mut ntp = Ntp::default();
    done(
        &mut ntp,
        Request {
            status: status::INS,
            ..asking(modes::STATUS)
        },
    );
    let steps: i64 = (86_390..86_420).map(|second| ntp.second(second).1).sum();
    assert_eq!(steps, -1);
    let told = ntp
        .adjust(&asking(0), false, 0)
        .expect("looking is allowed");
    assert_eq!((told.verdict, told.state.tai), (4, 1));
}
