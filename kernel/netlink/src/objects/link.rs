//! Links: shown, found by number or name, moved from stack to stack, and told what they are
//! already.
//!
//! All links are always up, for a stack has no state in which its own is down. What can be set is
//! whether all frames, or those for all groups, are wanted.

use alloc::sync::Arc;
use alloc::vec::Vec;

use netlink::{Dump, Link, Progress, Statistics, Writer};
use sync::Error;

use crate::answer::Refusal;
use crate::requester::Requester;
use net::{Interface, InterfaceFlags, LOOPBACK, NetStack, Traffic};
use task::namespaces::{self, Namespace};

/// `IFF_LOWER_UP`: there is a carrier.
const LOWER_UP: u32 = 0x1_0000;

/// `IF_OPER_*` (RFC 2863).
const UNKNOWN: u8 = 0;
const OPERATIONAL: u8 = 6;

/// `AF_BRIDGE`: of bridges' ports, of which we have none.
const BRIDGE: u8 = 7;

/// Frames that a device's queue takes, as Linux's Ethernet devices say it.
const QUEUE_FRAMES: u32 = 1000;

const EVERYBODY: [u8; 6] = [0xff; 6];

fn statistics(of: &Traffic) -> Statistics {
    Statistics {
        rx_frames: of.frames_in,
        tx_frames: of.frames_out,
        rx_bytes: of.bytes_in,
        tx_bytes: of.bytes_out,
        rx_dropped: of.dropped_in,
        tx_dropped: of.dropped_out,
        ..Statistics::default()
    }
}

/// A link as a message.
pub(crate) fn message<'i>(stack: &NetStack, interface: &'i Interface) -> Link<'i> {
    let is_ethernet = interface.number != LOOPBACK;
    Link {
        hardware_type: interface.hardware_type,
        index: interface.number,
        flags: u32::from(stack.flags(interface).bits()) | LOWER_UP,
        name: Some(interface.name.as_bytes()),
        address: Some(&interface.mac),
        broadcast: Some(if is_ethernet {
            &EVERYBODY
        } else {
            &interface.mac
        }),
        mtu: Some(interface.mtu),
        queue_frames: Some(QUEUE_FRAMES),
        queueing: Some(b"noqueue"),
        operational_state: Some(if is_ethernet { OPERATIONAL } else { UNKNOWN }),
        carrier: Some(1),
        group: Some(0),
        promiscuity: Some(stack.promiscuity(interface)),
        transmit_queues: Some(1),
        receive_queues: Some(1),
        statistics: Some(statistics(&stack.traffic(interface))),
        ..Link::default()
    }
}

/// Which links a dump shows: all, or none if it is about what we do not have.
#[derive(Clone, Debug)]
pub(crate) struct DumpFilter {
    is_any: bool,
}

impl DumpFilter {
    pub fn of(asked: &Link<'_>) -> Self {
        let is_any = asked.family != BRIDGE && asked.kind.is_none() && asked.master.is_none();
        Self { is_any }
    }

    pub fn fill(
        &self,
        stack: &NetStack,
        dump: &Dump,
        from: usize,
        to: &mut Writer<'_>,
    ) -> Progress {
        let all: Vec<Interface> = match self.is_any {
            true => stack.interfaces(),
            false => Vec::new(),
        };
        let message = |interface| message(stack, interface);
        dump.fill(to, all.iter().skip(from).map(message))
    }
}

/// The link that a message means, by number or else by name.
fn find(stack: &NetStack, object: &Link<'_>) -> Result<Interface, Error> {
    let name = object.name.or(object.long_name);
    let is_meant = |interface: &Interface| match object.index {
        0 => name == Some(interface.name.as_bytes()),
        index => interface.number == index,
    };
    let mut all = stack.interfaces().into_iter();
    all.find(is_meant).ok_or(Error::WrongDevice)
}

/// Shows one link.
pub(crate) fn get(requester: &Requester<'_>, object: &Link<'_>) -> Result<(), Refusal> {
    let stack = requester.stack();
    let found = find(stack, object)?;
    Ok(requester.answer(&message(stack, &found))?)
}

/// The stack into which a command moves a link; `None` if it stays.
///
/// Errors: `NoSuchProcess`, `BadFile`, `Invalid` for a file that is no network namespace.
fn moved_to(object: &Link<'_>) -> Result<Option<Arc<NetStack>>, Error> {
    let namespace = match (object.namespace_process, object.namespace_file) {
        (Some(id), _) => {
            let thread = task::find_thread(id).ok_or(Error::NoSuchProcess)?;
            thread.net.get()
        }
        (None, Some(descriptor)) => {
            let open = task::current().files.get().get(descriptor)?;
            match namespaces::namespace_of(&open)? {
                Namespace::Net(namespace) => namespace,
                Namespace::Mount(_) | Namespace::Uts(_) => return Err(Error::Invalid),
            }
        }
        (None, None) => return Ok(None),
    };
    Ok(Some(net::of_namespace(namespace)))
}

/// Moves a link into another stack, sets what can be set, or takes a command that asks for nothing
/// but what is so already.
pub(crate) fn change(requester: &Requester<'_>, object: &Link<'_>) -> Result<(), Refusal> {
    if object.kind.is_some() {
        return Err(Refusal::new(Error::Unsupported, "Unknown device type"));
    }
    let stack = requester.stack();
    let found = find(stack, object)?;
    if let Some(to) = moved_to(object)? {
        return match Arc::ptr_eq(stack, &to) {
            true => Ok(()),
            false => Ok(net::move_interface(stack, found.number, &to)?),
        };
    }
    let now = message(stack, &found);
    let changed = (object.flags ^ now.flags) & object.changes;
    let settable = u32::from(InterfaceFlags::SETTABLE.bits());
    let is_so = changed & !settable == 0
        && object.mtu.is_none_or(|mtu| Some(mtu) == now.mtu)
        && object
            .address
            .is_none_or(|address| Some(address) == now.address)
        && object.master.is_none_or(|master| master == 0)
        && (object.index == 0 || object.name.is_none_or(|name| Some(name) == now.name));
    match is_so {
        true => {
            let wanted = InterfaceFlags::from_bits_truncate((now.flags ^ changed) as u16);
            stack.set_flags(found.number, wanted);
            Ok(())
        }
        false => Err(Refusal::new(
            Error::Unsupported,
            "The link cannot be changed",
        )),
    }
}
