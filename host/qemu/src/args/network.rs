//! The network card and where it leads.

use std::os::fd::RawFd;
use std::path::Path;

use super::{Args, escaped};
use crate::machine::{
    Board, CARDS_HUB, Forward, Forwarder, Machine, Net, Nic, Protocol, Switched, WAY_OUT,
};
use crate::tap;

/// What leads the card's hub to passt, by a socket that QEMU inherits.
pub(crate) fn wire(socket: RawFd) -> [String; 4] {
    let stream = format!("stream,id={WAY_OUT},server=off,addr.type=fd,addr.str={socket}");
    [
        "-netdev".into(),
        stream,
        "-netdev".into(),
        port_of_way_out(),
    ]
}

fn port_of_way_out() -> String {
    format!("hubport,id=way,hubid={CARDS_HUB},netdev={WAY_OUT}")
}

/// Where the card is at its hub.
fn port_of_card() -> String {
    format!("hubport,id=net,hubid={CARDS_HUB}")
}

impl Machine {
    pub(super) fn add_network(&self, args: &mut Args) {
        let mut queues = 1;
        match &self.net {
            Net::None => return,
            // By a hub, so that a machine that runs can be put on networks ([`crate::Qmp::add_wire`]).
            Net::User => {
                args.pair("-netdev", port_of_card());
                // passt's wire is a socket that is there once passt is: [`wire`].
                if self.forwarder == Forwarder::Qemu {
                    let forwards = self.forwards.iter().map(Forward::option);
                    let forwards = forwards.collect::<String>();
                    args.pair("-netdev", format!("user,id={WAY_OUT}{forwards}"));
                    args.pair("-netdev", port_of_way_out());
                }
            }
            Net::Switched(place) => {
                self.add_switches(args);
                if self.forwarder == Forwarder::Qemu {
                    self.add_way_out(args, place);
                }
            }
            Net::Tap { interface } => {
                queues = tap::queues(interface, self.cpus);
                args.pair("-netdev", tap_option(interface, queues));
            }
            Net::Datagrams { local, remote } => {
                let end = |name: &str, path: &Path| {
                    let path = escaped(&path.to_string_lossy());
                    format!(",{name}.type=unix,{name}.path={path}")
                };
                let ends = end("local", local) + &end("remote", remote);
                args.pair("-netdev", format!("dgram,id=net{ends}"));
            }
        }
        args.pair("-device", self.card(queues));
    }

    /// The card's wires to its switches, by a hub, on which each sees all, and takes what is of its own network. One that has a
    /// single wire is given others while the machine runs ([`crate::Qmp::add_wire`]).
    fn add_switches(&self, args: &mut Args) {
        for number in 0..=self.further_switches {
            let wire = format!("wire{number}");
            args.pair("-netdev", listening(&wire, &self.socket_of_switch(number)));
            let port = format!("hubport,id=port{number},hubid={CARDS_HUB},netdev={wire}");
            args.pair("-netdev", port);
        }
        args.pair("-netdev", port_of_card());
    }

    /// QEMU's user network, which the switch reaches by a socket: a hub joins both.
    fn add_way_out(&self, args: &mut Args, place: &Switched) {
        let Switched {
            address,
            subnet,
            prefix_len,
            gateway,
            name_server,
        } = place;
        let forwards = self.forwards.iter().map(Forward::option);
        let forwards = forwards.collect::<String>();
        args.pair(
            "-netdev",
            format!(
                "user,id={WAY_OUT},ipv6=off,net={subnet}/{prefix_len},host={gateway},\
                 dns={name_server},dhcpstart={address}{forwards}"
            ),
        );
        args.pair("-netdev", listening("door", &self.way_out_socket()));
        for (number, end) in [WAY_OUT, "door"].into_iter().enumerate() {
            let port = format!("hubport,id=hub{number},hubid=1,netdev={end}");
            args.pair("-netdev", port);
        }
    }

    /// The card behind which the host has `queues`. One CPU has no use for more than one.
    fn card(&self, queues: u8) -> String {
        let card = match (self.nic, self.board) {
            (Nic::Virtio, Board::Q35) => "virtio-net-pci,netdev=net,disable-legacy=on,romfile=",
            (Nic::Virtio, Board::Microvm) => "virtio-net-device,netdev=net",
            (Nic::E1000, _) => "e1000,netdev=net,romfile=",
            (Nic::Igb, _) => "igb,netdev=net,romfile=",
        };
        let mac = self.mac.map(|mac| {
            let bytes = mac.map(|byte| format!("{byte:02x}"));
            format!(",mac={}", bytes.join(":"))
        });
        let behind = match self.nic {
            Nic::Virtio => self.behind_iommu(),
            Nic::E1000 | Nic::Igb => "",
        };
        let place = match self.is_card_for_program {
            true => ",addr=8",
            false => "",
        };
        let card = card.to_string() + behind + place + &mac.unwrap_or_default();
        let has_queues = self.nic == Nic::Virtio && self.board == Board::Q35;
        match has_queues && queues > 1 && self.cpus > 1 {
            // A vector for each receive and transmit queue, the commands' and the
            // configuration's.
            true => format!("{card},mq=on,vectors={}", 2 * u16::from(queues) + 2),
            false => card,
        }
    }
}

impl Forward {
    fn option(&self) -> String {
        let protocol = match self.protocol {
            Protocol::Tcp => "tcp",
            Protocol::Udp => "udp",
        };
        let Forward {
            host_ip,
            host_port,
            guest_port,
            ..
        } = self;
        format!(",hostfwd={protocol}:{host_ip}:{host_port}-:{guest_port}")
    }
}

/// A stream at which a switch calls, and again after its end.
fn listening(id: &str, path: &Path) -> String {
    let path = escaped(&path.to_string_lossy());
    format!("stream,id={id},server=on,addr.type=unix,addr.path={path}")
}

fn tap_option(interface: &str, queues: u8) -> String {
    let interface = escaped(interface);
    let queues = match queues {
        1 => String::new(),
        queues => format!(",queues={queues}"),
    };
    format!("tap,id=net,ifname={interface},script=no,downscript=no{queues}")
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use crate::args::tests::machine;
    use crate::program::Acceleration;

    #[test]
    fn ports_are_forwarded_to_the_machine() {
        let forward = Forward {
            host_ip: Ipv4Addr::LOCALHOST,
            host_port: 6380,
            guest_port: 6379,
            protocol: Protocol::Tcp,
        };
        let machine = Machine {
            forwards: vec![forward],
            ..machine()
        };
        let args = machine.qemu_args(Acceleration::Tcg);
        for wanted in [
            "user,id=outside,hostfwd=tcp:127.0.0.1:6380-:6379",
            "hubport,id=way,hubid=2,netdev=outside",
            "hubport,id=net,hubid=2",
        ] {
            assert!(args.contains(&wanted.to_string()), "{args:?}");
        }
        let by_passt = Machine {
            forwarder: Forwarder::Passt,
            ..machine
        };
        let args = by_passt.qemu_args(Acceleration::Tcg).join(" ");
        assert!(args.contains("virtio-net-pci,netdev=net,"), "{args}");
        assert!(!args.contains("hostfwd"), "{args}");
        let stream = "stream,id=outside,server=off,addr.type=fd,addr.str=7";
        let port = "hubport,id=way,hubid=2,netdev=outside";
        assert_eq!(wire(7), ["-netdev", stream, "-netdev", port]);
    }

    #[test]
    fn a_machine_on_a_switch_listens_for_it_and_its_ports_lead_to_its_own_address() {
        let address = |last| Ipv4Addr::new(10, 89, 3, last);
        let machine = Machine {
            net: Net::Switched(Switched {
                address: address(7),
                subnet: address(0),
                prefix_len: 24,
                gateway: address(254),
                name_server: address(1),
            }),
            ..machine()
        };
        let args = machine.qemu_args(Acceleration::Tcg).join(" ");
        for wanted in [
            "stream,id=wire0,server=on,addr.type=unix,addr.path=/s,,t/card.sock",
            "hubport,id=port0,hubid=2,netdev=wire0",
            "hubport,id=net,hubid=2",
            "net=10.89.3.0/24,host=10.89.3.254,dns=10.89.3.1,dhcpstart=10.89.3.7",
            "stream,id=door,server=on,addr.type=unix,addr.path=/s,,t/net.sock",
            "hubport,id=hub0,hubid=1,netdev=outside",
        ] {
            assert!(args.contains(wanted), "no {wanted}: {args}");
        }
        let by_passt = Machine {
            forwarder: Forwarder::Passt,
            ..machine
        };
        let args = by_passt.qemu_args(Acceleration::Tcg).join(" ");
        assert!(!args.contains("hubid=1") && args.contains("card.sock"));
    }

    #[test]
    fn a_card_leads_to_several_switches_by_a_hub() {
        let machine = Machine {
            net: Net::Switched(Switched {
                address: Ipv4Addr::new(10, 89, 3, 7),
                subnet: Ipv4Addr::new(10, 89, 3, 0),
                prefix_len: 24,
                gateway: Ipv4Addr::new(10, 89, 3, 254),
                name_server: Ipv4Addr::new(10, 89, 3, 1),
            }),
            further_switches: 1,
            ..machine()
        };
        let args = machine.qemu_args(Acceleration::Tcg).join(" ");
        for wanted in [
            "stream,id=wire0,server=on,addr.type=unix,addr.path=/s,,t/card.sock",
            "stream,id=wire1,server=on,addr.type=unix,addr.path=/s,,t/card1.sock",
            "hubport,id=port1,hubid=2,netdev=wire1",
            "hubport,id=net,hubid=2",
            "virtio-net-pci,netdev=net",
        ] {
            assert!(args.contains(wanted), "no {wanted}: {args}");
        }
    }

    #[test]
    fn a_machine_without_network_has_no_card() {
        let machine = Machine {
            net: Net::None,
            ..machine()
        };
        assert!(
            !machine
                .qemu_args(Acceleration::Tcg)
                .iter()
                .any(|arg| arg.contains("net"))
        );
    }

    #[test]
    fn the_card_is_the_one_that_was_chosen() {
        for (nic, card) in [
            (Nic::E1000, "e1000,netdev=net"),
            (Nic::Igb, "igb,netdev=net"),
        ] {
            let machine = Machine { nic, ..machine() };
            let args = machine.qemu_args(Acceleration::Tcg);
            assert!(args.iter().any(|arg| arg.starts_with(card)));
            assert!(!args.iter().any(|arg| arg.starts_with("virtio-net")));
        }
    }

    #[test]
    fn a_card_on_sockets_names_both_and_its_own_station() {
        let machine = Machine {
            mac: Some([2, 0, 0, 0, 0, 0xab]),
            net: Net::Datagrams {
                local: "/a,b".into(),
                remote: "/c".into(),
            },
            ..machine()
        };
        let args = machine.qemu_args(Acceleration::Tcg);
        let has = |wanted: &str| assert!(args.contains(&wanted.to_string()), "{args:?}");
        has("dgram,id=net,local.type=unix,local.path=/a,,b,remote.type=unix,remote.path=/c");
        has("virtio-net-pci,netdev=net,disable-legacy=on,romfile=,mac=02:00:00:00:00:ab");
    }

    #[test]
    fn a_card_has_several_queues_where_the_host_and_the_machine_have_several() {
        let card = |cpus, queues| Machine { cpus, ..machine() }.card(queues);
        assert!(card(4, 4).ends_with(",mq=on,vectors=10"), "{}", card(4, 4));
        assert_eq!(card(4, 1), card(1, 1));
        assert_eq!(card(1, 2), card(1, 1));
        assert!(tap_option("t,1", 2).contains("ifname=t,,1,"));
        assert!(tap_option("t", 2).ends_with(",queues=2"));
        assert!(tap_option("t", 1).ends_with("downscript=no"));
    }
}
