//! Where a machine begins: at its kernel, or where another one was.

use super::{Args, escaped};
use crate::machine::{Board, Machine, Origin};
use crate::snapshot;

impl Machine {
    /// What the board is told of memory that is a file.
    pub(super) fn backed_memory(&self) -> &'static str {
        match (&self.origin, self.board) {
            (Origin::Boot, _) if !self.shares_memory() || self.nodes > 1 => "",
            (_, Board::Q35) => ",memory-backend=pc.ram",
            (_, Board::Microvm) => ",memory-backend=microvm.ram",
        }
    }

    pub(super) fn add_origin(&self, args: &mut Args) {
        match &self.origin {
            Origin::Boot => {
                args.pair("-kernel", self.kernel.to_string_lossy());
                args.pair("-initrd", self.initrd.to_string_lossy());
                args.pair("-append", &self.command_line);
                if self.shares_memory() && self.nodes == 1 {
                    self.add_shared_memory(args);
                }
            }
            Origin::Template(folder) => {
                self.add_memory(args, &snapshot::memory(folder).to_string_lossy(), "on");
                let socket = snapshot::handover(&self.state);
                args.pair("-incoming", format!("unix:{}", socket.to_string_lossy()));
                args.flags(&["-S"]);
            }
            Origin::Snapshot(folder) => {
                self.add_memory(args, &snapshot::memory(folder).to_string_lossy(), "off");
                args.pair("-incoming", "defer");
                args.flags(&["-S"]);
            }
        }
    }

    /// The name of the memory of a machine without nodes.
    fn memory_name(&self) -> &'static str {
        match self.board {
            Board::Q35 => "pc.ram",
            Board::Microvm => "microvm.ram",
        }
    }

    /// Memory that programs beside QEMU see too, which hand its file on by a socket.
    fn add_shared_memory(&self, args: &mut Args) {
        let (name, mib) = (self.memory_name(), self.memory_mib);
        let object = format!("memory-backend-memfd,id={name},size={mib}M,share=on");
        args.pair("-object", object);
    }

    /// By the name that memory without a file has, or QEMU would take it for another.
    fn add_memory(&self, args: &mut Args, path: &str, share: &str) {
        let name = self.memory_name();
        args.pair(
            "-object",
            format!(
                "memory-backend-file,id={name},size={}M,mem-path={},share={share},x-use-canonical-path-for-ramblock-id=off",
                self.memory_mib,
                escaped(path),
            ),
        );
    }
}

#[cfg(test)]
mod tests {
    use crate::args::tests::machine;
    use crate::machine::{Machine, Origin};
    use crate::program::Acceleration;

    fn args(origin: Origin) -> String {
        let machine = Machine {
            origin,
            ..machine()
        };
        machine.qemu_args(Acceleration::Tcg).join(" ")
    }

    #[test]
    fn machines_of_a_snapshot_share_what_none_of_them_writes_and_load_no_kernel() {
        let args = args(Origin::Snapshot("/a,b".into()));
        assert!(args.contains("mem-path=/a,,b/memory,share=off,"), "{args}");
        assert!(args.contains("-M q35,memory-backend=pc.ram "), "{args}");
        assert!(args.contains("-incoming defer -S"), "{args}");
        assert!(!args.contains("-kernel"), "{args}");
    }

    #[test]
    fn a_template_writes_the_snapshots_memory_and_does_not_run() {
        let args = args(Origin::Template("/a".into()));
        assert!(args.contains("mem-path=/a/memory,share=on,"), "{args}");
        assert!(args.contains("-S"), "{args}");
    }
}
