//! Folders of the host.

use super::{Args, escaped};
use crate::machine::{Board, FolderServer, Machine, Volume};

impl Machine {
    pub(super) fn add_volume(&self, args: &mut Args, volume: &Volume) {
        match volume.server {
            FolderServer::NineP => self.add_9p(args, volume),
            FolderServer::Virtiofsd => self.add_virtiofs(args, volume),
        }
    }

    fn add_9p(&self, args: &mut Args, volume: &Volume) {
        let Volume {
            tag,
            host,
            read_only,
            owners,
            ..
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

    /// virtiofsd listens already.
    fn add_virtiofs(&self, args: &mut Args, volume: &Volume) {
        let tag = &volume.tag;
        let socket = escaped(&self.folder_socket(tag).to_string_lossy());
        args.pair("-chardev", format!("socket,id={tag},path={socket}"));
        let device = match self.board {
            Board::Q35 => "vhost-user-fs-pci",
            Board::Microvm => "vhost-user-fs-device",
        };
        args.pair("-device", format!("{device},chardev={tag},tag={tag}"));
    }
}

#[cfg(test)]
mod tests {
    use crate::args::tests::machine;
    use crate::machine::{Board, FolderServer, Machine, Origin, Owners, Volume};
    use crate::program::Acceleration;

    fn args(board: Board, nodes: u8, server: FolderServer) -> String {
        let volume = Volume {
            host: "/h,1".into(),
            tag: "v".into(),
            read_only: true,
            owners: Owners::Host,
            server,
        };
        let machine = Machine {
            board,
            nodes,
            volumes: vec![volume],
            origin: Origin::Boot,
            ..machine()
        };
        machine.qemu_args(Acceleration::Tcg).join(" ")
    }

    #[test]
    fn who_serves_a_folder_beside_qemu_sees_the_machines_memory() {
        let memory = "memory-backend-memfd,id=pc.ram,size=256M,share=on";
        let served = args(Board::Q35, 1, FolderServer::Virtiofsd);
        assert!(served.contains("socket,id=v,path=/s,,t/v.sock"), "{served}");
        assert!(
            served.contains("vhost-user-fs-pci,chardev=v,tag=v"),
            "{served}"
        );
        assert!(served.contains("-M q35,memory-backend=pc.ram "), "{served}");
        assert!(
            served.contains(memory) && !served.contains("-fsdev"),
            "{served}"
        );
        let small = args(Board::Microvm, 1, FolderServer::Virtiofsd);
        assert!(small.contains("vhost-user-fs-device,"), "{small}");
        assert!(small.contains("memory-backend=microvm.ram"), "{small}");
        let nodes = args(Board::Q35, 2, FolderServer::Virtiofsd);
        assert!(
            nodes.contains("memory-backend-memfd,id=node0,size=128M,share=on"),
            "{nodes}"
        );
        assert!(!nodes.contains("pc.ram"), "{nodes}");
        let by_qemu = args(Board::Q35, 1, FolderServer::NineP);
        assert!(by_qemu.contains("path=/h,,1,"), "{by_qemu}");
        assert!(!by_qemu.contains("memory-backend"), "{by_qemu}");
    }
}
