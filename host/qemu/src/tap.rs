//! How many queues a tap interface of the host has for a machine.
//!
//! An interface that was made with `multi_queue` can only be opened by someone who asks
//! for several queues, any other one only by someone who asks for one. So the interface
//! decides whether there are several, and the machine's CPUs how many. Queues that the
//! machine's driver does not use QEMU detaches, with one exception: its e1000 reads all, but
//! once that card was full it goes on with the first only. What the host then puts into
//! another one is never seen, so the two are not brought together ([`check`]).
//!
//! `ip` is asked, for sysfs shows the network of whoever mounted it, which in a namespace
//! is another one.

use std::process::Command;

use crate::{Error, Machine, Net};

/// Refuses a card of one queue at an interface of several.
pub(crate) fn check(machine: &Machine) -> Result<(), Error> {
    match &machine.net {
        Net::Tap { interface }
            if machine.nic.has_one_queue() && queues(interface, machine.cpus) > 1 =>
        {
            let interface = interface.clone();
            Err(Error::OneQueue { interface })
        }
        _ => Ok(()),
    }
}

/// Queues to open of `interface` for a machine with `cpus`; 1 if it has no more, or if
/// there is no such interface, which QEMU then says.
pub(crate) fn queues(interface: &str, cpus: u8) -> u8 {
    let shown = Command::new("ip")
        .args(["-details", "link", "show", "dev", interface])
        .output();
    let shown = shown.map(|output| output.stdout).unwrap_or_default();
    queues_by(&String::from_utf8_lossy(&shown), cpus)
}

/// By what `ip` says of the interface: `tun type tap ... persist on multi_queue ...`.
fn queues_by(shown: &str, cpus: u8) -> u8 {
    match shown.split_whitespace().any(|word| word == "multi_queue") {
        true => cpus.max(2),
        false => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_with_many_queues_has_one_for_each_cpu_and_never_one_alone() {
        let shown = "tun type tap pi off vnet_hdr off persist on multi_queue numqueues 0";
        assert_eq!(queues_by(shown, 4), 4);
        assert_eq!(queues_by(shown, 1), 2);
    }

    #[test]
    fn an_interface_with_one_queue_and_one_that_is_not_there_have_one() {
        let shown = "tun type tap pi off vnet_hdr off persist on addrgenmode eui64";
        assert_eq!(queues_by(shown, 4), 1);
        assert_eq!(queues("no-such-interface", 4), 1);
    }
}
