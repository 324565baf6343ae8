use crate::{Action, Data, IrqSet, IrqSetHeader};

const TRIGGER_EVENTFD: u32 = 1 << 2 | 1 << 5;

fn header() -> IrqSetHeader {
    IrqSetHeader {
        argsz: 20 + 3 * 4,
        flags: TRIGGER_EVENTFD,
        index: 2,
        start: 1,
        count: 3,
    }
}

fn parse(header: IrqSetHeader) -> Option<IrqSet> {
    IrqSet::parse(&header, |index| {
        (index < 5).then_some(if index == 2 { 4 } else { 0 })
    })
}

#[test]
fn a_request_names_interrupts_that_there_are() {
    let set = IrqSet {
        index: 2,
        which: 1..4,
        data: Data::Eventfds,
        action: Action::Trigger,
    };
    assert_eq!(parse(header()), Some(set));
    let refused = [
        IrqSetHeader {
            argsz: 19,
            ..header()
        },
        IrqSetHeader {
            argsz: 31,
            ..header()
        },
        IrqSetHeader {
            index: 5,
            ..header()
        },
        IrqSetHeader {
            index: 1,
            ..header()
        },
        IrqSetHeader {
            start: 4,
            ..header()
        },
        IrqSetHeader {
            start: 4,
            count: 0,
            ..header()
        },
        IrqSetHeader {
            start: 2,
            ..header()
        },
        IrqSetHeader {
            start: u32::MAX,
            count: 1,
            ..header()
        },
        IrqSetHeader {
            argsz: u32::MAX,
            count: u32::MAX,
            ..header()
        },
    ];
    for header in refused {
        assert_eq!(parse(header), None, "{header:?}");
    }
}

#[test]
fn a_request_says_one_thing_about_one_kind_of_data() {
    for flags in 0..256 {
        let (data, action) = (flags & 7, flags >> 3);
        let is_one = |bits: u32| matches!(bits, 1 | 2 | 4);
        let parsed = parse(IrqSetHeader { flags, ..header() });
        assert_eq!(
            parsed.is_some(),
            is_one(data) && is_one(action),
            "{flags:#x}"
        );
    }
}

#[test]
fn nothing_may_follow_a_request_for_all() {
    let off = IrqSetHeader {
        argsz: 20,
        flags: 1 << 0 | 1 << 5,
        start: 0,
        count: 0,
        ..header()
    };
    let parsed = parse(off).expect("it makes sense");
    assert_eq!((parsed.which, parsed.data), (0..0, Data::None));
}
