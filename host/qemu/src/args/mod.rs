//! QEMU's command line for a [`Machine`].
//!
//! `-nodefaults` leaves out every device that we do not name, and an empty
//! `romfile` the network card's boot program: both shorten the start. The two serial
//! ports stand at the PC's addresses on both boards.
//!
//! What a kind of device adds is in a file of its own.

mod balloon;
mod disk;
pub(crate) mod network;
mod nodes;
mod origin;
mod streams;
mod volume;

use crate::machine::{Board, Machine, Stdio};
use crate::program::Acceleration;

impl Machine {
    /// The arguments for QEMU, without the program's name.
    pub fn qemu_args(&self, acceleration: Acceleration) -> Vec<String> {
        let mut args = Args(Vec::new());
        args.flags(&["-nodefaults", "-no-user-config", "-no-reboot"]);
        args.pair("-display", "none");
        args.pair("-M", self.board.name().to_string() + self.backed_memory());
        args.pair("-accel", acceleration.name());
        args.pair("-cpu", acceleration.processor());
        if acceleration == Acceleration::Kvm {
            // The profiler's NMIs by the interval timer are never acknowledged.
            args.pair("-global", "kvm-pit.lost_tick_policy=discard");
        }
        if matches!(
            acceleration,
            Acceleration::TcgCounted | Acceleration::TcgTurns
        ) {
            args.pair("-icount", "shift=0,sleep=off");
        }
        if acceleration == Acceleration::TcgTurns {
            add_turns(&mut args);
        }
        if acceleration == Acceleration::TcgSlow {
            // What QEMU would say of it is nobody's.
            args.pair("-d", "nochain");
            args.pair("-D", "/dev/null");
        }
        if let Some(plugin) = &self.plugin {
            args.pair("-plugin", plugin);
        }
        args.pair("-smp", self.cpus.to_string());
        args.pair("-m", format!("{}M", self.memory_mib));
        if self.nodes > 1 {
            self.add_nodes(&mut args);
        }
        if self.has_iommu {
            // Before all devices that are to be behind it. It sees no interrupts of an I/O APIC that
            // is in KVM, so there they pass as they are.
            let remaps = match acceleration {
                Acceleration::Kvm => "off",
                _ => "on",
            };
            args.pair("-device", format!("intel-iommu,intremap={remaps}"));
        }
        self.add_origin(&mut args);
        self.add_serial_ports(&mut args);
        if self.stdio == Stdio::Ports {
            self.add_streams(&mut args);
        }
        let qmp = escaped(&self.qmp_socket().to_string_lossy());
        args.pair("-qmp", format!("unix:{qmp},server=on,wait=off"));
        args.pair("-device", "isa-debug-exit,iobase=0x501,iosize=1");
        self.add_network(&mut args);
        for volume in &self.volumes {
            self.add_volume(&mut args, volume);
        }
        self.add_disks(&mut args);
        if self.has_balloon {
            self.add_balloon(&mut args);
        }
        args.0
    }

    /// What puts a virtio device behind the IOMMU, which it passes otherwise.
    fn behind_iommu(&self) -> &'static str {
        match self.has_iommu {
            true => ",iommu_platform=on",
            false => "",
        }
    }
}

impl Board {
    fn name(self) -> &'static str {
        match self {
            Board::Q35 => "q35",
            // Without ACPI the virtio-mmio devices are named on the kernel's command
            // line; the legacy register layout is never offered.
            Board::Microvm => {
                "microvm,pic=on,pit=on,rtc=on,acpi=off,auto-kernel-cmdline=on,pcie=off"
            }
        }
    }
}

struct Args(Vec<String>);

impl Args {
    fn flags(&mut self, flags: &[&str]) {
        self.0.extend(flags.iter().map(ToString::to_string));
    }

    fn pair(&mut self, flag: &str, value: impl AsRef<str>) {
        self.flags(&[flag, value.as_ref()]);
    }
}

/// While instructions are counted, the CPUs share the time to the next of QEMU's timers. The filter
/// of a network that leads nowhere has one each microsecond.
fn add_turns(args: &mut Args) {
    args.pair("-netdev", "hubport,id=turns,hubid=0");
    args.pair("-object", "filter-buffer,id=turn,netdev=turns,interval=1");
}

/// QEMU splits options at commas; a doubled comma stands for one.
fn escaped(value: &str) -> String {
    value.replace(',', ",,")
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::machine::{Accel, Forwarder, Net, Nic, Origin, Volume};

    /// One without anything special.
    pub(crate) fn machine() -> Machine {
        Machine {
            kernel: "/k".into(),
            initrd: "/i".into(),
            command_line: "init=/bin/true".into(),
            board: Board::Q35,
            accel: Accel::Tcg,
            memory_mib: 256,
            cpus: 1,
            nodes: 1,
            has_iommu: false,
            has_balloon: false,
            is_card_for_program: false,
            nic: Nic::Virtio,
            mac: None,
            net: Net::User,
            forwards: vec![],
            further_switches: 0,
            forwarder: Forwarder::Qemu,
            volumes: vec![],
            disks: vec![],
            stdio: Stdio::Serial,
            plugin: None,
            origin: Origin::Boot,
            state: "/s,t".into(),
        }
    }

    #[test]
    fn an_iommu_comes_before_all_devices_and_no_virtio_device_passes_it() {
        let args_of = |has_iommu| {
            let machine = Machine {
                has_iommu,
                stdio: Stdio::Ports,
                volumes: vec![Volume {
                    host: "/h".into(),
                    tag: "v".into(),
                    read_only: false,
                    owners: crate::Owners::Host,
                    server: crate::FolderServer::NineP,
                }],
                ..machine()
            };
            let args = machine.qemu_args(Acceleration::Tcg);
            let devices = args.windows(2).filter(|pair| pair[0] == "-device");
            devices.map(|pair| pair[1].clone()).collect::<Vec<_>>()
        };
        let devices = args_of(true);
        assert!(devices[0].starts_with("intel-iommu"), "{devices:?}");
        let virtio = devices
            .iter()
            .filter(|device| device.starts_with("virtio-"));
        let behind = virtio.map(|device| device.contains(",iommu_platform=on"));
        assert_eq!(behind.collect::<Vec<_>>(), [true; 3], "{devices:?}");
        let without = args_of(false).join(" ");
        assert!(!without.contains("iommu"), "{without}");
    }

    #[test]
    fn special_machines_have_what_makes_them_so_and_no_other_has() {
        const TIMER: &str = "filter-buffer,id=turn,netdev=turns,interval=1";
        let (counted, turns) = (Acceleration::TcgCounted, Acceleration::TcgTurns);
        let makings = [
            ("-icount", &[counted, turns][..]),
            ("tcg,thread=single", &[turns]),
            (TIMER, &[turns]),
            ("nochain", &[Acceleration::TcgSlow]),
        ];
        for (making, special) in makings {
            for acceleration in [Acceleration::Tcg, counted, turns, Acceleration::TcgSlow] {
                let args = machine().qemu_args(acceleration);
                let has_it = args.contains(&making.to_string());
                assert_eq!(
                    has_it,
                    special.contains(&acceleration),
                    "{making}: {acceleration:?}"
                );
            }
        }
    }
}
