//! What a program asks of a device's interrupts (VFIO_DEVICE_SET_IRQS), checked as Linux does
//! (`vfio_set_irqs_validate_and_prepare`).

use core::ops::Range;

use crate::layout::{Argument, IrqSetHeader};

const DATA_NONE: u32 = 1 << 0;
const DATA_BOOL: u32 = 1 << 1;
const DATA_EVENTFD: u32 = 1 << 2;
const DATA: u32 = DATA_NONE | DATA_BOOL | DATA_EVENTFD;
const MASK: u32 = 1 << 3;
const UNMASK: u32 = 1 << 4;
const TRIGGER: u32 = 1 << 5;
const ACTIONS: u32 = MASK | UNMASK | TRIGGER;

/// What follows the request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Data {
    /// Nothing: it is for all that it names.
    None,
    /// A byte for each, 0 for those that it is not for.
    Bools,
    /// A descriptor for each, or -1.
    Eventfds,
}

impl Data {
    /// Bytes for each interrupt.
    pub fn bytes_each(self) -> usize {
        match self {
            Self::None => 0,
            Self::Bools => 1,
            Self::Eventfds => 4,
        }
    }
}

/// What is to be done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// Hold interrupts back.
    Mask,
    /// Let them come.
    Unmask,
    /// Say what they raise, or raise them.
    Trigger,
}

/// A request that is for interrupts that there are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IrqSet {
    /// The kind.
    pub index: u32,
    /// Which of them; may be empty.
    pub which: Range<u32>,
    /// What follows.
    pub data: Data,
    /// What is to be done.
    pub action: Action,
}

impl IrqSet {
    /// `None` for what makes no sense. `count` says how many there are of a kind.
    pub fn parse(header: &IrqSetHeader, count: impl FnOnce(u32) -> Option<u32>) -> Option<Self> {
        let IrqSetHeader {
            argsz,
            flags,
            index,
            start,
            count: asked,
        } = *header;
        let room = (argsz as usize).checked_sub(IrqSetHeader::BYTES_MIN)?;
        let (count, end) = (count(index)?, start.checked_add(asked)?);
        if flags & !(DATA | ACTIONS) != 0 || start >= count || end > count {
            return None;
        }
        let (data, action) = (data(flags)?, action(flags)?);
        let has_room = asked as usize * data.bytes_each() <= room;
        has_room.then_some(Self {
            index,
            which: start..end,
            data,
            action,
        })
    }
}

fn data(flags: u32) -> Option<Data> {
    match flags & DATA {
        DATA_NONE => Some(Data::None),
        DATA_BOOL => Some(Data::Bools),
        DATA_EVENTFD => Some(Data::Eventfds),
        _ => None,
    }
}

fn action(flags: u32) -> Option<Action> {
    match flags & ACTIONS {
        MASK => Some(Action::Mask),
        UNMASK => Some(Action::Unmask),
        TRIGGER => Some(Action::Trigger),
        _ => None,
    }
}
