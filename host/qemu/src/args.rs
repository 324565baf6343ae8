//! QEMU's command line for a [`Machine`].
//!
//! `-nodefaults` leaves out every device that we do not name, and an empty
//! `romfile` the network card's boot program: both shorten the start. The two serial
//! ports stand at the PC's addresses on both boards.

use std::path::Path;

use crate::machine::{
    Board, Disk, DiskBus, Forward, Forwarder, Machine, Net, Nic, Protocol, Stdio, Volume,
};
use crate::program::Acceleration;
use crate::{passt, streams, tap};

impl Machine {
    /// The arguments for QEMU, without the program's name.
    pub fn qemu_args(&self, acceleration: Acceleration) -> Vec<String> {
        let mut args = Args(Vec::new());
        args.flags(&["-nodefaults", "-no-user-config", "-no-reboot"]);
        args.pair("-display", "none");
        args.pair("-M", self.board.name());
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
        args.pair("-kernel", self.kernel.to_string_lossy());
        args.pair("-initrd", self.initrd.to_string_lossy());
        args.pair("-append", &self.command_line);
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
        if self.disks.iter().any(|disk| disk.bus == DiskBus::Nvme) {
            args.pair("-device", "nvme,id=nvme0,serial=sietch");
        }
        for (number, disk) in self.disks.iter().enumerate() {
            self.add_disk(&mut args, number, disk);
        }
        args.0
    }

    /// Nodes in a row: each step between two adds to their distance.
    fn add_nodes(&self, args: &mut Args) {
        const NEAR: u8 = 10;
        let (nodes, cpus) = (u32::from(self.nodes), u32::from(self.cpus));
        for node in 0..nodes {
            let part = |whole: u32| whole * node / nodes..whole * (node + 1) / nodes;
            let (memory, own) = (part(self.memory_mib), part(cpus));
            args.pair(
                "-object",
                format!("memory-backend-ram,id=node{node},size={}M", memory.len()),
            );
            let own = match own.is_empty() {
                true => String::new(),
                false => format!(",cpus={}-{}", own.start, own.end - 1),
            };
            args.pair(
                "-numa",
                format!("node,nodeid={node},memdev=node{node}{own}"),
            );
        }
        for (from, to) in (0..self.nodes).flat_map(|from| (0..self.nodes).map(move |to| (from, to)))
        {
            let distance = NEAR + NEAR * from.abs_diff(to);
            args.pair("-numa", format!("dist,src={from},dst={to},val={distance}"));
        }
    }

    fn add_serial_ports(&self, args: &mut Args) {
        args.pair("-chardev", "stdio,id=console,signal=off");
        args.pair(
            "-chardev",
            format!(
                "socket,id=kernel,path={},server=on,wait=off,logfile={}",
                escaped(&self.control_socket().to_string_lossy()),
                escaped(&self.kernel_log().to_string_lossy()),
            ),
        );
        args.pair("-serial", "chardev:console");
        match self.board {
            Board::Q35 => args.pair("-serial", "chardev:kernel"),
            Board::Microvm => {
                args.pair("-device", "isa-serial,chardev=kernel,iobase=0x2f8,irq=3");
                args.pair("-global", "virtio-mmio.force-legacy=false");
            }
        }
    }

    fn add_streams(&self, args: &mut Args) {
        let bus = match self.board {
            Board::Q35 => "virtio-serial-pci,disable-legacy=on",
            Board::Microvm => "virtio-serial-device",
        };
        let behind = self.behind_iommu();
        // Port 0 would be a console of the kernel's.
        let ports = streams::NAMES.len() + 1;
        args.pair(
            "-device",
            format!("{bus},id=streams,max_ports={ports}{behind}"),
        );
        for (number, name) in (1..).zip(streams::NAMES) {
            let path = streams::socket(&self.state, name);
            let path = escaped(&path.to_string_lossy());
            args.pair("-chardev", format!("socket,id={name},path={path}"));
            args.pair(
                "-device",
                format!(
                    "virtserialport,bus=streams.0,nr={number},chardev={name},name=sietch.{name}"
                ),
            );
        }
    }

    /// What puts a virtio device behind the IOMMU, which it passes otherwise.
    fn behind_iommu(&self) -> &'static str {
        match self.has_iommu {
            true => ",iommu_platform=on",
            false => "",
        }
    }

    fn add_network(&self, args: &mut Args) {
        let mut queues = 1;
        match &self.net {
            Net::None => return,
            Net::User if self.forwarder == Forwarder::Passt => {
                let path = passt::socket(&self.state);
                let path = escaped(&path.to_string_lossy());
                args.pair(
                    "-netdev",
                    format!("stream,id=net,server=off,addr.type=unix,addr.path={path}"),
                );
            }
            Net::User => {
                let forwards = self.forwards.iter().map(Forward::option);
                args.pair(
                    "-netdev",
                    format!("user,id=net{}", forwards.collect::<String>()),
                );
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

    fn add_disk(&self, args: &mut Args, number: usize, disk: &Disk) {
        let path = escaped(&disk.file.to_string_lossy());
        let record = disk.record.as_ref();
        let file = match (disk.bad_sector, record) {
            (None, None) => format!("file.driver=file,file.filename={path}"),
            (None, Some(record)) => {
                let record = escaped(&record.to_string_lossy());
                format!(
                    "file.driver=blklogwrites,file.file.driver=file,file.file.filename={path},\
                     file.log.driver=file,file.log.filename={record}"
                )
            }
            (Some(sector), _) => {
                let fault = |number: usize, event: &str| {
                    let fault = format!("file.inject-error.{number}");
                    format!(",{fault}.event={event},{fault}.sector={sector}")
                };
                let faults = fault(0, "read_aio") + &fault(1, "write_aio");
                format!(
                    "file.driver=blkdebug,file.image.driver=file,file.image.filename={path}{faults}"
                )
            }
        };
        let access = if disk.read_only { ",read-only=on" } else { "" };
        let driver = disk.format.driver();
        args.pair(
            "-blockdev",
            format!("driver={driver},node-name=disk{number},discard=unmap{access},{file}"),
        );
        let device = self.disk_device(disk.bus);
        let block = match disk.block_bytes {
            Some(bytes) => format!(",logical_block_size={bytes},physical_block_size={bytes}"),
            None => String::new(),
        };
        args.pair("-device", format!("{device},drive=disk{number}{block}"));
    }

    fn disk_device(&self, bus: DiskBus) -> String {
        let device = match (bus, self.board) {
            // It is behind the IOMMU as its controller is.
            (DiskBus::Nvme, _) => return "nvme-ns,bus=nvme0".into(),
            (DiskBus::Virtio, Board::Q35) => format!(
                "virtio-blk-pci,disable-legacy=on,num-queues={cpus},vectors={vectors}",
                cpus = self.cpus,
                vectors = u16::from(self.cpus) + 1
            ),
            (DiskBus::Virtio, Board::Microvm) => "virtio-blk-device".into(),
        };
        device + self.behind_iommu()
    }

    fn add_volume(&self, args: &mut Args, volume: &Volume) {
        let Volume {
            tag,
            host,
            read_only,
            owners,
        } = volume;
        let path = escaped(&host.to_string_lossy());
        let access = if *read_only { ",readonly=on" } else { "" };
        let model = owners.security_model();
        args.pair(
            "-fsdev",
            format!("local,id={tag},path={path},security_model={model},multidevs=remap{access}"),
        );
        let device = match self.board {
            Board::Q35 => "virtio-9p-pci,disable-legacy=on",
            Board::Microvm => "virtio-9p-device",
        };
        let behind = self.behind_iommu();
        args.pair(
            "-device",
            format!("{device},fsdev={tag},mount_tag={tag}{behind}"),
        );
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

fn tap_option(interface: &str, queues: u8) -> String {
    let interface = escaped(interface);
    let queues = match queues {
        1 => String::new(),
        queues => format!(",queues={queues}"),
    };
    format!("tap,id=net,ifname={interface},script=no,downscript=no{queues}")
}

/// QEMU splits options at commas; a doubled comma stands for one.
fn escaped(value: &str) -> String {
    value.replace(',', ",,")
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use crate::machine::Accel;

    fn machine() -> Machine {
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
            is_card_for_program: false,
            nic: Nic::Virtio,
            mac: None,
            net: Net::User,
            forwards: vec![],
            forwarder: Forwarder::Qemu,
            volumes: vec![],
            disks: vec![],
            stdio: Stdio::Serial,
            plugin: None,
            state: "/s,t".into(),
        }
    }

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
        assert!(
            args.contains(&"user,id=net,hostfwd=tcp:127.0.0.1:6380-:6379".to_string()),
            "{args:?}"
        );
        let by_passt = Machine {
            forwarder: Forwarder::Passt,
            ..machine
        };
        let args = by_passt.qemu_args(Acceleration::Tcg).join(" ");
        let stream = "stream,id=net,server=off,addr.type=unix,addr.path=/s,,t/net.sock";
        assert!(args.contains(stream), "{args}");
        assert!(!args.contains("hostfwd"), "{args}");
    }

    #[test]
    fn nodes_share_all_memory_and_all_cpus() {
        let machine = Machine {
            nodes: 3,
            cpus: 2,
            memory_mib: 256,
            ..machine()
        };
        let args = machine.qemu_args(Acceleration::Tcg);
        let has = |wanted: &str| assert!(args.contains(&wanted.to_string()), "{args:?}");
        has("memory-backend-ram,id=node0,size=85M");
        has("memory-backend-ram,id=node2,size=86M");
        has("node,nodeid=0,memdev=node0");
        has("node,nodeid=1,memdev=node1,cpus=0-0");
        has("node,nodeid=2,memdev=node2,cpus=1-1");
        has("dist,src=0,dst=2,val=30");
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
    fn a_disk_has_a_queue_for_each_cpu_and_tests_may_spoil_a_sector() {
        let disk = Disk {
            file: "/d,isk".into(),
            format: crate::DiskFormat::Qcow2,
            read_only: true,
            bus: crate::DiskBus::Virtio,
            block_bytes: None,
            bad_sector: Some(9),
            record: None,
        };
        let machine = Machine {
            cpus: 3,
            disks: vec![disk],
            ..machine()
        };
        let args = machine.qemu_args(Acceleration::Tcg).join(" ");
        let file = "file.driver=blkdebug,file.image.driver=file,file.image.filename=/d,,isk,";
        let drive = "driver=qcow2,node-name=disk0,discard=unmap,read-only=on,";
        assert!(args.contains(&format!("{drive}{file}")), "{args}");
        assert!(args.contains("inject-error.1.event=write_aio,"), "{args}");
        let device = "virtio-blk-pci,disable-legacy=on,num-queues=3,vectors=4,drive=disk0";
        assert!(args.contains(device), "{args}");
    }

    #[test]
    fn disks_over_nvme_are_namespaces_of_one_controller() {
        let disk = Disk {
            file: "/disk".into(),
            format: crate::DiskFormat::Raw,
            read_only: false,
            bus: crate::DiskBus::Nvme,
            block_bytes: Some(4096),
            bad_sector: None,
            record: None,
        };
        let machine = Machine {
            disks: vec![disk.clone(), disk],
            ..machine()
        };
        let args = machine.qemu_args(Acceleration::Tcg).join(" ");
        assert_eq!(args.matches("-device nvme,id=nvme0,").count(), 1, "{args}");
        let blocks = "logical_block_size=4096,physical_block_size=4096";
        for number in 0..2 {
            let device = format!("-device nvme-ns,bus=nvme0,drive=disk{number},{blocks}");
            assert!(args.contains(&device), "{args}");
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

    #[test]
    fn each_stream_has_a_socket_and_a_port_by_its_name() {
        let stdio = Stdio::Ports;
        let machine = Machine { stdio, ..machine() };
        let args = machine.qemu_args(Acceleration::Tcg);
        let has = |wanted: &str| assert!(args.contains(&wanted.to_string()), "{args:?}");
        has("virtio-serial-pci,disable-legacy=on,id=streams,max_ports=6");
        has("socket,id=stdout,path=/s,,t/stdout.sock");
        has("virtserialport,bus=streams.0,nr=3,chardev=stdout,name=sietch.stdout");
    }

    #[test]
    fn commas_in_paths_are_doubled() {
        let args = machine().qemu_args(Acceleration::Tcg);
        assert!(
            args.iter()
                .any(|arg| arg.contains("logfile=/s,,t/kernel.log")),
            "{args:?}"
        );
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

    #[test]
    fn both_boards_have_the_second_serial_port() {
        for board in [Board::Q35, Board::Microvm] {
            let machine = Machine { board, ..machine() };
            let args = machine.qemu_args(Acceleration::Tcg).join(" ");
            assert!(args.contains("-serial chardev:console"), "{args}");
            assert!(
                args.contains("chardev:kernel") || args.contains("chardev=kernel"),
                "{args}"
            );
        }
    }
}
