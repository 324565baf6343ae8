//! A switch that a machine has to itself, between its card and its way out.
//!
//! What leads a machine out (QEMU's user network, passt) takes each frame for one of its own: it answers for all addresses, and
//! its machine's station is that of the last frame. So a machine that has links of other networks over its card needs a switch
//! before its way out, which lets pass what is the card's own, and which is asked for names of those networks. Who was started on a
//! network has that network's. Others have one of their own, a thread of their session:
//!
//! - a machine on no network, as long as it is connected to some. Its way out is at the card's hub, and stays there with all
//!   connections by it; a gate in QEMU keeps the card's frames from it, and the switch brings those that may pass
//!   (`qemu::Qmp::close_gate`);
//! - a machine that has left its first network, until it comes back. Its way out waits for a switch that calls, whichever.
//!
//! The machine does not notice: its addresses, the gateway, and whom it asks for names stay.

use std::thread;

use qemu::Machine;
use switch::protocol::Join;
use switch::{Alone, Files, Network};

use super::{Place, join_by};
use crate::failure::Failure;
pub(super) use crate::machine_plan::USER_ADDRESS;
use crate::machine_plan::{USER_GATEWAY, USER_NAME_SERVER, USER_PREFIX_LEN, USER_SUBNET};

/// What the way out of a machine on no network is to it.
pub(super) fn of_user_network(machine: &Machine) -> Network {
    Network {
        // No name ends so.
        name: String::new(),
        subnet: USER_SUBNET,
        prefix_len: USER_PREFIX_LEN,
        prefix6: None,
        created_s: 0,
        alone: Some(Alone {
            name_server: USER_NAME_SERVER,
            gateway: USER_GATEWAY,
            mac: machine.mac.unwrap_or(qemu::passt::FIRST_STATION),
        }),
    }
}

/// What the machine keeps of a first network that it leaves.
pub(super) fn after(place: &Place) -> Network {
    let network = &place.network;
    Network {
        prefix6: None,
        alone: Some(Alone {
            name_server: network.name_server(),
            gateway: network.gateway(),
            mac: place.lease.mac,
        }),
        ..network.clone()
    }
}

/// Starts the switch, and makes the machine its member.
pub(super) fn join(machine: &Machine, network: Network, join: Join) -> Result<Place, Failure> {
    let file = |end: &str| machine.state.join(format!("switch.{end}"));
    let files = Files {
        socket: file("sock"),
        lock: file("lock"),
        leases: file("json"),
    };
    let (socket, served, name) = (files.socket.clone(), network.clone(), network.name.clone());
    let start = move || {
        let (network, files) = (served.clone(), files.clone());
        // It ends with its member, or with us.
        thread::spawn(move || switch::serve(network, &files));
        Ok(())
    };
    let (lease, kept) = join_by(&socket, &name, join, Box::new(start))?;
    Ok(Place::of_card(network, lease, kept))
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn the_user_networks_addresses_are_of_its_subnet_and_a_machine_may_have_its_own() {
        let subnet = Network {
            alone: None,
            subnet: USER_SUBNET,
            prefix_len: USER_PREFIX_LEN,
            name: String::new(),
            prefix6: None,
            created_s: 0,
        };
        assert_eq!(subnet.check_member(USER_ADDRESS), Ok(()));
        for address in [USER_GATEWAY, USER_NAME_SERVER, Ipv4Addr::new(10, 0, 2, 1)] {
            assert!(subnet.contains(address));
        }
    }
}
