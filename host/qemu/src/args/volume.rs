//! Folders of the host (9P).

use super::{Args, escaped};
use crate::machine::{Board, Machine, Volume};

impl Machine {
    pub(super) fn add_volume(&self, args: &mut Args, volume: &Volume) {
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
