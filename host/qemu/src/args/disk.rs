//! Disks: a file of the host behind virtio or a namespace of the NVMe controller.

use super::{Args, escaped};
use crate::machine::{Board, Disk, DiskBus, Machine, Trial};

impl Machine {
    pub(super) fn add_disks(&self, args: &mut Args) {
        if self.disks.iter().any(|disk| disk.bus == DiskBus::Nvme) {
            self.add_nvme(args);
        }
        for (number, disk) in self.disks.iter().enumerate() {
            self.add_disk(args, number, disk);
        }
    }

    /// The one controller. What virtual functions may have comes on top of what it has by itself.
    fn add_nvme(&self, args: &mut Args) {
        const OWN_QUEUES: u16 = 64;
        let functions = self.disks.iter().filter_map(|disk| disk.virtual_function);
        let Some(count) = functions.max().map(u16::from) else {
            return args.pair("-device", "nvme,id=nvme0,serial=sietch");
        };
        // A queue for each CPU, and the admin queue.
        let interrupts = count * u16::from(self.cpus);
        let queues = interrupts + count;
        args.pair("-device", "nvme-subsys,id=nvme-subsys");
        args.pair(
            "-device",
            format!(
                "nvme,id=nvme0,serial=sietch,subsys=nvme-subsys,sriov_max_vfs={count},\
                 sriov_vq_flexible={queues},sriov_vi_flexible={interrupts},\
                 max_ioqpairs={},msix_qsize={}",
                OWN_QUEUES + queues,
                OWN_QUEUES + 1 + interrupts
            ),
        );
    }

    fn add_disk(&self, args: &mut Args, number: usize, disk: &Disk) {
        let path = escaped(&disk.file.to_string_lossy());
        let debugged = |rules: &str| {
            format!("file.driver=blkdebug,file.image.driver=file,file.image.filename={path}{rules}")
        };
        let file = match &disk.trial {
            None => format!("file.driver=file,file.filename={path}"),
            Some(Trial::Record(record)) => {
                let record = escaped(&record.to_string_lossy());
                format!(
                    "file.driver=blklogwrites,file.file.driver=file,file.file.filename={path},\
                     file.log.driver=file,file.log.filename={record}"
                )
            }
            Some(Trial::BadSector(sector)) => {
                let fault = |number: usize, event: &str| {
                    let fault = format!("file.inject-error.{number}");
                    format!(",{fault}.event={event},{fault}.sector={sector}")
                };
                debugged(&(fault(0, "read_aio") + &fault(1, "write_aio")))
            }
            Some(Trial::Faults(rules)) => debugged(&format!(
                ",file.config={}",
                escaped(&rules.to_string_lossy())
            )),
        };
        let access = if disk.read_only { ",read-only=on" } else { "" };
        let cache = if disk.is_unsafe {
            ",cache.no-flush=on"
        } else {
            ""
        };
        let driver = disk.format.driver();
        args.pair(
            "-blockdev",
            format!("driver={driver},node-name=disk{number},discard=unmap{access}{cache},{file}"),
        );
        let device = self.disk_device(disk);
        let block = match disk.block_bytes {
            Some(bytes) => format!(",logical_block_size={bytes},physical_block_size={bytes}"),
            None => String::new(),
        };
        args.pair(
            "-device",
            format!("{device},id=drive{number},drive=disk{number}{block}"),
        );
    }

    fn disk_device(&self, disk: &Disk) -> String {
        let device = match (disk.bus, self.board) {
            // It is behind the IOMMU as its controller is.
            (DiskBus::Nvme, _) => return self.namespace(disk),
            (DiskBus::Virtio, Board::Q35) => format!(
                "virtio-blk-pci,disable-legacy=on,num-queues={cpus},vectors={vectors}",
                cpus = self.cpus,
                vectors = u16::from(self.cpus) + 1
            ),
            (DiskBus::Virtio, Board::Microvm) => "virtio-blk-device".into(),
        };
        device + self.behind_iommu()
    }

    /// Beside virtual functions each namespace has one controller at a time, at first the machine's own or none.
    fn namespace(&self, disk: &Disk) -> String {
        let has_functions = self
            .disks
            .iter()
            .any(|disk| disk.virtual_function.is_some());
        let access = match (has_functions, disk.virtual_function) {
            (false, _) => "",
            (true, None) => ",shared=off",
            (true, Some(_)) => ",shared=off,detached=on",
        };
        format!("nvme-ns,bus=nvme0{access}")
    }
}

#[cfg(test)]
mod tests {
    use crate::args::tests::machine;
    use crate::machine::{Disk, Machine, Trial};
    use crate::program::Acceleration;

    #[test]
    fn a_disk_has_a_queue_for_each_cpu_and_tests_may_spoil_a_sector() {
        let disk = Disk {
            file: "/d,isk".into(),
            format: crate::DiskFormat::Qcow2,
            read_only: true,
            bus: crate::DiskBus::Virtio,
            block_bytes: None,
            virtual_function: None,
            is_unsafe: false,
            trial: Some(Trial::BadSector(9)),
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
        assert!(!args.contains("no-flush"), "{args}");
        assert!(args.contains("inject-error.1.event=write_aio,"), "{args}");
        let device =
            "virtio-blk-pci,disable-legacy=on,num-queues=3,vectors=4,id=drive0,drive=disk0";
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
            virtual_function: None,
            is_unsafe: true,
            trial: None,
        };
        let machine = Machine {
            disks: vec![disk.clone(), disk],
            ..machine()
        };
        let args = machine.qemu_args(Acceleration::Tcg).join(" ");
        assert_eq!(args.matches("-device nvme,id=nvme0,").count(), 1, "{args}");
        let blocks = "logical_block_size=4096,physical_block_size=4096";
        assert_eq!(args.matches(",cache.no-flush=on,").count(), 2, "{args}");
        for number in 0..2 {
            let device =
                format!("-device nvme-ns,bus=nvme0,id=drive{number},drive=disk{number},{blocks}");
            assert!(args.contains(&device), "{args}");
        }
    }

    #[test]
    fn namespaces_of_virtual_functions_are_theirs_alone() {
        let disk = |virtual_function| Disk {
            file: "/disk".into(),
            format: crate::DiskFormat::Raw,
            read_only: false,
            bus: crate::DiskBus::Nvme,
            block_bytes: None,
            virtual_function,
            is_unsafe: false,
            trial: None,
        };
        let machine = Machine {
            cpus: 2,
            disks: vec![disk(None), disk(Some(2)), disk(Some(1))],
            ..machine()
        };
        let args = machine.qemu_args(Acceleration::Tcg).join(" ");
        for piece in [
            "-device nvme-subsys,id=nvme-subsys -device nvme,id=nvme0,",
            "subsys=nvme-subsys,sriov_max_vfs=2,sriov_vq_flexible=6,sriov_vi_flexible=4,",
            "max_ioqpairs=70,msix_qsize=69",
            "nvme-ns,bus=nvme0,shared=off,id=drive0,drive=disk0",
            "nvme-ns,bus=nvme0,shared=off,detached=on,id=drive1,drive=disk1",
            "nvme-ns,bus=nvme0,shared=off,detached=on,id=drive2,drive=disk2",
        ] {
            assert!(args.contains(piece), "no {piece}: {args}");
        }
    }
}
