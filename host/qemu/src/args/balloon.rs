//! The device by which the host asks for memory.

use super::Args;
use crate::balloon;
use crate::machine::{Board, Machine};

impl Machine {
    /// The machine may take back what it needs: what the host asks for is a wish. One interrupt is for what the host asks
    /// for, and one for the queues.
    pub(super) fn add_balloon(&self, args: &mut Args) {
        let device = match self.board {
            Board::Q35 => "virtio-balloon-pci,disable-legacy=on,vectors=2",
            Board::Microvm => "virtio-balloon-device",
        };
        let (id, behind) = (balloon::ID, self.behind_iommu());
        args.pair(
            "-device",
            format!("{device},id={id},deflate-on-oom=on{behind}"),
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::args::tests::machine;
    use crate::machine::{Board, Machine};
    use crate::program::Acceleration;

    fn args(board: Board, has_balloon: bool) -> String {
        let machine = Machine {
            board,
            has_balloon,
            ..machine()
        };
        machine.qemu_args(Acceleration::Tcg).join(" ")
    }

    #[test]
    fn a_machine_has_a_balloon_if_it_is_asked_for() {
        assert!(!args(Board::Q35, false).contains("balloon"));
        let wanted =
            "-device virtio-balloon-pci,disable-legacy=on,vectors=2,id=balloon,deflate-on-oom=on";
        assert!(args(Board::Q35, true).ends_with(wanted));
        let wanted = "-device virtio-balloon-device,id=balloon,deflate-on-oom=on";
        assert!(args(Board::Microvm, true).ends_with(wanted));
    }
}
