//! Serial ports, and ports for a program's input and output.

use super::{Args, escaped};
use crate::machine::{Board, Machine};
use crate::streams;

impl Machine {
    pub(super) fn add_serial_ports(&self, args: &mut Args) {
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

    pub(super) fn add_streams(&self, args: &mut Args) {
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
}

#[cfg(test)]
mod tests {
    use crate::args::tests::machine;
    use crate::machine::{Board, Machine, Stdio};
    use crate::program::Acceleration;

    #[test]
    fn each_stream_has_a_socket_and_a_port_by_its_name() {
        let stdio = Stdio::Ports;
        let machine = Machine { stdio, ..machine() };
        let args = machine.qemu_args(Acceleration::Tcg);
        let has = |wanted: &str| assert!(args.contains(&wanted.to_string()), "{args:?}");
        has("virtio-serial-pci,disable-legacy=on,id=streams,max_ports=7");
        has("socket,id=stdout,path=/s,,t/stdout.port");
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
