//! How many queues a tap interface of the host has for a machine.
//!
//! An interface that was made with `multi_queue` can only be opened by someone who asks
//! for several queues, any other one only by someone who asks for one. So the interface
//! decides whether there are several, and the machine's CPUs how many. Queues that the
//! machine's driver does not use QEMU detaches.
//!
//! `ip` is asked, for sysfs shows the network of whoever mounted it, which in a namespace
//! is another one.

use std::process::Command;

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
